//! Server-sent events, as far as servers of models and of tools use them: a parser that takes bytes in any pieces. Pure.
//!
//! Format: <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>.

/// Bytes of an id that are kept.
#[cfg(feature = "mcp")]
const MAX_ID: usize = 1024;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// `event:`, empty when the server gives none.
    pub(crate) name: String,
    /// `data:` lines, joined by line feeds.
    pub(crate) data: String,
}

/// The parser. Lines may be torn anywhere, inside a character too, and end with LF, CR LF or CR.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    after_cr: bool,
    event: SseEvent,
    has_data: bool,
    #[cfg(feature = "mcp")]
    id: Option<String>,
    /// `id:` of the last whole event: from where a stream that breaks off goes on.
    #[cfg(feature = "mcp")]
    pub(crate) last_id: Option<String>,
    /// `retry:`: milliseconds to wait before it is asked to.
    #[cfg(feature = "mcp")]
    pub(crate) retry: Option<u64>,
}

impl Parser {
    /// Takes the next bytes; gives the events that they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        for &byte in bytes {
            let second_half = byte == b'\n' && self.after_cr;
            self.after_cr = byte == b'\r';
            match byte {
                b'\n' if second_half => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        events
    }

    /// The stream is over. An event without its blank line counts: some servers forget it after the last one.
    pub(crate) fn end(mut self) -> Option<SseEvent> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.has_data.then_some(self.event)
    }

    /// Bytes that are held until an event is whole.
    #[cfg(feature = "mcp")]
    pub(crate) fn held(&self) -> usize {
        self.line.len() + self.event.data.len()
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_start_matches('\u{feff}');
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            #[cfg(feature = "mcp")]
            if let Some(id) = self.id.take() {
                self.last_id = Some(id).filter(|id| !id.is_empty());
            }
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "event" => value.clone_into(&mut self.event.name),
            #[cfg(feature = "mcp")]
            "id" if value.len() <= MAX_ID && !value.contains('\0') => self.id = Some(value.to_owned()),
            #[cfg(feature = "mcp")]
            "retry" => self.retry = value.parse().ok(),
            // Comments (an empty field) and what may come.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
        let mut parser = Parser::default();
        let mut events: Vec<_> = pieces.into_iter().flat_map(|piece| parser.feed(piece)).collect();
        events.extend(parser.end());
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    fn pair(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    /// design: interface §6, comments, names, several data lines, all three line ends, a last event without its blank line.
    #[test]
    fn events_are_read() {
        let stream =
            "\u{feff}: hello\n\ndata: a\n\nevent: x\r\ndata:b\r\ndata: c\r\nid: 7\r\n\r\ndata:  d\r\rdata\n\nevent: lost\n\ndata: [DONE]";
        let want = [
            pair("", "a"),
            pair("x", "b\nc"),
            pair("", " d"),
            pair("", ""),
            // The name of an event without data is forgotten with it.
            pair("", "[DONE]"),
        ];
        assert_eq!(parse([stream.as_bytes()]), want);
    }

    proptest! {
        /// design: interface §6, however the network tears a stream, the same events come of it.
        #[test]
        fn any_chopping_gives_the_same_events(cuts in proptest::collection::vec(1_usize..7, 1..40)) {
            let stream = ": ping\r\ndata: {\"x\": \"你好\"}\r\n\r\nevent: y\ndata: 1\ndata: 2\n\ndata: é\r\rdata: [DONE]\n\n".as_bytes();
            let mut pieces = Vec::new();
            let mut rest = stream;
            for cut in cuts.iter().cycle() {
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(parse(pieces), parse([stream]));
        }
    }
}
