//! The server's text is the client's: against a client that keeps UTF-16 units and searches lines anew each time.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};

use super::{Encoding, Position, PositionRange, Text};

/// A random edit: two positions as numbers that are reduced to valid ones, and the new text.
type Edit = ([(usize, usize); 2], String);

fn text() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        just("a"),
        just("\n"),
        just("\r"),
        just("\r\n"),
        just("é"),
        just("€"),
        just("😀"),
        just("- key: "),
    ];
    vec(letter, 0..12).prop_map(|parts| parts.concat())
}

fn just(text: &'static str) -> impl Strategy<Value = &'static str> {
    proptest::strategy::Just(text)
}

/// The unit at a position, as an editor that stores UTF-16 has it.
fn utf16_offset_of_position(units: &[u16], at: Position) -> usize {
    let (mut line, mut start) = (0, 0);
    let is_break =
        |index: usize| units[index] == 10 || units[index] == 13 && units.get(index + 1) != Some(&10);
    for index in 0..units.len() {
        if line == at.line {
            break;
        }
        if is_break(index) {
            (line, start) = (line + 1, index + 1);
        }
    }
    if line < at.line {
        return units.len();
    }
    let length = units[start..].iter().take_while(|unit| **unit != 10 && **unit != 13).count();
    let mut found = start + at.character.min(length);
    // Inside of a pair: its start.
    if found > start && units.get(found).is_some_and(|unit| (0xdc00..0xe000).contains(unit)) {
        found -= 1;
    }
    found
}

fn encode(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

proptest! {
    #[test]
    fn edits_give_the_text_of_the_client(
        first in text(),
        edits in vec(([(0..6_usize, 0..9_usize), (0..6_usize, 0..9_usize)], text()), 0..12),
    ) {
        let mut server = Text::new(first.clone());
        let mut client = encode(&first);
        for (ends, new) in &edits as &[Edit] {
            let [start, end] = ends.map(|(line, character)| Position { line, character });
            let (low, high) = (utf16_offset_of_position(&client, start), utf16_offset_of_position(&client, end));
            client.splice(low.min(high)..low.max(high), encode(new));
            server.replace(PositionRange { start, end }, Encoding::Utf16, new);
            assert_eq!(server.as_str(), String::from_utf16(&client).expect("no pair is split"));
            assert_eq!(server.starts, Text::new(server.as_str().to_owned()).starts);
        }
    }

    #[test]
    fn positions_and_bytes_are_the_same_places(text in text(), any_byte in any::<usize>()) {
        let made = Text::new(text.clone());
        let mut at = text.floor_char_boundary(any_byte % (text.len() + 1));
        // Between `\r` and `\n` there is no position.
        if text[..at].ends_with('\r') && text[at..].starts_with('\n') {
            at -= 1;
        }
        for encoding in Encoding::ALL {
            assert_eq!(made.offset(made.position(at, encoding), encoding), at, "{text:?} {encoding:?}");
        }
    }
}

#[test]
fn columns_count_what_was_agreed_on() {
    let text = Text::new("é😀x\r\n".to_owned());
    for (encoding, character) in [(Encoding::Utf8, 6), (Encoding::Utf16, 3), (Encoding::Utf32, 2)] {
        let at = Position { line: 0, character };
        assert_eq!((text.offset(at, encoding), text.position(6, encoding)), (6, at), "{encoding:?}");
        assert_eq!(Encoding::parse(encoding.name()), Some(encoding));
    }
    let inside = Position { line: 0, character: 2 };
    assert_eq!(text.offset(inside, Encoding::Utf16), 2, "half of a pair");
    assert_eq!(text.offset(Position { line: 0, character: 99 }, Encoding::Utf16), 7, "before the break");
    assert_eq!(text.offset(Position { line: 9, character: 0 }, Encoding::Utf16), 9, "the end");
}
