// A template's source, rewritten where its spelling is not the parser's.

/// `{% generation %}` marks what an assistant said, for training: its content stays, in a scope of its own, and the tags
/// go. Lines end with a newline, whatever they ended with, and the one behind `{% raw %}` is part of its text.
pub fn prepare(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(begin) = rest.find("{%").into_iter().chain(rest.find("{#")).chain(rest.find("{{")).min() {
        let (text, tag) = rest.split_at(begin);
        out.push_str(text);
        let size = match &tag[..2] {
            "{#" => tag.find("#}").map(|end| end + 2),
            "{{" => end_of_tag(tag, "}}"),
            _ => end_of_tag(tag, "%}"),
        };
        let Some(size) = size else {
            out.push_str(tag); // never closed: the parser says so
            return out;
        };
        let (tag, after) = tag.split_at(size);
        rest = after;
        match tag_name(tag) {
            "generation" => out.push_str(&tag.replacen("generation", "with", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endwith", 1)),
            "raw" => {
                out.push_str(tag);
                if rest.starts_with('\n') && !tag.ends_with("-%}") {
                    out.push('\n'); // the parser drops one
                }
                let end = end_of_raw(rest);
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            _ => out.push_str(tag),
        }
    }
    out + rest
}

/// Where a tag ends, past its mark, strings inside it passed over.
fn end_of_tag(tag: &str, mark: &str) -> Option<usize> {
    let bytes = tag.as_bytes();
    let mut quote = None;
    let mut at = 2;
    while at < bytes.len() {
        let byte = bytes[at];
        match quote {
            Some(_) if byte == b'\\' => at += 1,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            None if bytes[at..].starts_with(mark.as_bytes()) => return Some(at + mark.len()),
            None => {}
        }
        at += 1;
    }
    None
}

/// The first word of a block tag; empty for other tags.
fn tag_name(tag: &str) -> &str {
    let Some(inner) = tag.strip_prefix("{%") else { return "" };
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner).trim_start();
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
    &inner[..end]
}

/// Where the tag that ends a raw block begins.
fn end_of_raw(text: &str) -> usize {
    let is_end = |&(at, _): &(usize, &str)| tag_name(&text[at..]) == "endraw";
    text.match_indices("{%").find(is_end).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::prepare;

    #[test]
    fn generation_tags_become_scopes() {
        assert_eq!(prepare("a{%- generation -%} x {% endgeneration %}b"), "a{%- with -%} x {% endwith %}b");
        assert_eq!(prepare("{%+generation%}\n"), "{%+with%}\n");
    }

    #[test]
    fn lines_end_as_the_parser_knows_them() {
        assert_eq!(prepare("a\r\nb\rc"), "a\nb\nc");
        assert_eq!(prepare("{% raw %}\nx{% endraw %}\n"), "{% raw %}\n\nx{% endraw %}\n");
        assert_eq!(prepare("{% raw -%}\nx{% endraw %}"), "{% raw -%}\nx{% endraw %}");
    }

    #[test]
    fn what_only_looks_like_a_tag_is_left() {
        for same in [
            "{# {% generation %} #}",
            "{{ '{% generation %}' }}",
            "{% raw %}{% generation %}{% endraw %}",
            "{% set x = \"\\\"%} {% generation %}\" %}",
            "{% generations %}",
            "{% if generation %}",
            "{{ never closed",
            "generation",
            "",
        ] {
            assert_eq!(prepare(same), same);
        }
    }
}
