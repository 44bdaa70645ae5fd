use portcullis::adapters::transcripts::Format::React;
use portcullis::adapters::transcripts::recognise;

use crate::support::{all, notes, one, told};

#[test]
fn a_thought_and_its_action_are_one_reply_and_the_observation_is_its_result() {
    let read = one(
        React,
        "Question: who?\nThought 1: look\nmore\nAction 1: Search[a \"b\" [c]]\nObservation 1: seen\nThought 2: so\nAction 2: Finish[Ann [2]]\n",
    );
    assert_eq!(
        told(&read),
        [r#"who?: look
more|Search({"input":"a \"b\" [c]"})=seen; Ann [2]"#]
    );
    assert_eq!(
        notes(&read)[..2],
        ["line 6: text beside the terminal call, left out", r#"line 7: the call of "Finish" was read as the answer"#]
    );
}

#[test]
fn what_follows_the_answer_was_written_by_a_judge_and_is_left_out() {
    let read = one(React, "Question: q\nAction 1: Finish[a]\nObservation 1: Answer is CORRECT\nCorrect answer: a\n");
    assert_eq!(told(&read), ["q: a"]);
    let left: Vec<_> = notes(&read).into_iter().filter(|note| note.ends_with("left out")).collect();
    assert_eq!(left, ["line 3: an observation after the answer, left out", "line 4: the correct answer, left out"]);
}

#[test]
fn the_older_labels_are_read_too_and_an_input_that_is_an_object_stands_as_it_is() {
    let read = one(
        React,
        "Question: q\nThought: t\nAction: look\nAction Input: {\"at\": 1}\nObservation: seen\nThought: done\nFinal Answer: a\n",
    );
    assert_eq!(told(&read), [r#"q: t|look({"at": 1})=seen; a"#]);
}

#[test]
fn an_action_that_is_no_call_is_one_of_an_unknown_tool() {
    let read = one(React, "Question: q\nThought 1: t\nAction 1: I will search\nObservation 1: Invalid Action\n");
    assert_eq!(told(&read), ["q: t|I will search({})=Invalid Action"]);
    assert_eq!(notes(&read)[0], "line 3: an action that is no Name[..]: taken as a call of that name");
}

#[test]
fn every_question_is_a_recording_of_its_own() {
    let text = "Question: a\nAction 1: Finish[1]\nQuestion: b\nThought 1: hm\n";
    let read = all(React, text);
    assert_eq!(read.iter().flat_map(told).collect::<Vec<_>>(), ["a: 1", "b: hm"]);
}

#[test]
fn a_text_without_a_first_question_or_without_a_step_is_none() {
    for text in ["Thought 1: t\nAction 1: Search[a]\n", "Question: q\nno step\n", "Question: q", "", "\n\n"] {
        assert_eq!(recognise(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(recognise(b"\n\nQuestion: q\nmore of it\nThought 1: t"), Some(React));
}
