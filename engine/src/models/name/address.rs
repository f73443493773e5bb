//! Addresses of the hub in the place of names.

/// Beginnings of addresses, after the scheme.
const HOSTS: [&str; 4] = ["hf.co/", "huggingface.co/", "www.huggingface.co/", "hf://"];

/// The name of the repository or file at an address: `hf.co/owner/repo[:QUANT]`, the address of a page or a
/// download with or without `https://`, or `hf://owner/repo/file.gguf`. `None` for other texts.
pub(super) fn as_name(text: &str) -> Option<String> {
    let text = text.trim();
    let bare =
        text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or(text);
    let path = HOSTS.iter().find_map(|host| bare.strip_prefix(host))?;
    let path = path.split(['?', '#']).next().unwrap_or(path).trim_end_matches('/');
    let mut parts = path.splitn(5, '/');
    let (owner, repo) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (kind, revision, file) = (parts.next(), parts.next(), parts.next());
    // A page of the repository or of a file names the revision before the file.
    let (Some("resolve" | "blob" | "tree"), Some(revision)) = (kind, revision) else {
        return Some(format!("hf:{path}"));
    };
    let mut name = format!("hf:{owner}/{repo}");
    file.iter().for_each(|file| name.extend(["/", file]));
    if revision != "main" {
        name.extend(["@", revision]);
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_names_and_other_texts_are_not() {
        for (address, name) in [
            ("hf.co/owner/repo", "hf:owner/repo"),
            ("hf.co/owner/repo:Q8_0", "hf:owner/repo:Q8_0"),
            ("huggingface.co/owner/repo/", "hf:owner/repo"),
            ("https://huggingface.co/owner/repo", "hf:owner/repo"),
            ("https://huggingface.co/owner/repo/tree/main", "hf:owner/repo"),
            ("https://huggingface.co/o/r/blob/main/sub/f.gguf", "hf:o/r/sub/f.gguf"),
            ("https://hf.co/o/r/resolve/v1/f.gguf?download=true", "hf:o/r/f.gguf@v1"),
            ("hf://owner/repo/f.gguf", "hf:owner/repo/f.gguf"),
        ] {
            assert_eq!(as_name(address).as_deref(), Some(name), "{address}");
        }
        for text in ["hf:owner/repo", "smollm2", "https://example.com/o/r", "./hf.co/o/r", ""] {
            assert_eq!(as_name(text), None, "{text}");
        }
    }
}
