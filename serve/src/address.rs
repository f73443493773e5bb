//! Addresses to listen on, which may be written in part.

use std::net::Ipv6Addr;

/// Address that is used for a port alone.
const HOST: &str = "127.0.0.1";
/// Port that is used for an address alone; Ollama's.
const PORT: &str = "11434";

/// Address and port of a text that may lack one: `8080`, `127.0.0.1`, `:8080` (all addresses), `::1`,
/// `http://127.0.0.1:8080`. Texts of other forms stay as they are.
pub(super) fn complete(text: &str) -> String {
    let text = text.trim().trim_end_matches('/');
    let text = text.strip_prefix("http://").unwrap_or(text);
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("{HOST}:{text}");
    }
    if let Some(port) = text.strip_prefix(':').filter(|port| !port.contains(':')) {
        return format!("0.0.0.0:{port}");
    }
    match text.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{PORT}"),
        Err(_) if text.ends_with(']') || !text.contains(':') => format!("{text}:{PORT}"),
        Err(_) => text.to_owned(),
    }
}

/// An address with another host or another port.
pub(super) fn replaced(text: &str, host: Option<&str>, port: Option<u16>) -> String {
    let whole = complete(text);
    let (old_host, old_port) = whole.rsplit_once(':').unwrap_or((&whole, PORT));
    let host = match host {
        Some(host) if host.parse::<Ipv6Addr>().is_ok() => format!("[{host}]"),
        Some(host) => host.to_owned(),
        None => old_host.to_owned(),
    };
    match port {
        Some(port) => format!("{host}:{port}"),
        None => format!("{host}:{old_port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_the_usual() {
        for (text, whole) in [
            ("8080", "127.0.0.1:8080"),
            (":8080", "0.0.0.0:8080"),
            ("127.0.0.1", "127.0.0.1:11434"),
            ("localhost", "localhost:11434"),
            ("localhost:0", "localhost:0"),
            ("::1", "[::1]:11434"),
            ("[::1]", "[::1]:11434"),
            ("[::1]:80", "[::1]:80"),
            ("http://0.0.0.0:8080/", "0.0.0.0:8080"),
        ] {
            assert_eq!(complete(text), whole, "{text}");
        }
    }

    #[test]
    fn host_and_port_are_replaced_apart() {
        let usual = "127.0.0.1:11434";
        assert_eq!(replaced(usual, None, Some(8080)), "127.0.0.1:8080");
        assert_eq!(replaced(usual, Some("0.0.0.0"), None), "0.0.0.0:11434");
        assert_eq!(replaced("8080", Some("::1"), None), "[::1]:8080");
        assert_eq!(replaced("[::1]:80", None, Some(81)), "[::1]:81");
    }
}
