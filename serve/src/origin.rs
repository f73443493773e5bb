//! Protection against cross-site requests: a page of another site, opened in a browser on this machine, could otherwise
//! use the models.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{StatusCode, header};

use super::error::ApiError;

/// What a request says of its way.
#[derive(Debug, Default)]
pub(crate) struct Asked<'a> {
    /// The host that it was sent to; empty if it names none.
    host: &'a str,
    /// The origin of the page that sent it, if a browser did.
    origin: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// What a request says. HTTP/2 names the host in the address only.
    pub(crate) fn of(request: &'a Request) -> Asked<'a> {
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let authority = || request.uri().authority().map(|authority| authority.as_str());
        let host = text(header::HOST).or_else(authority).unwrap_or_default();
        Asked { host, origin: text(header::ORIGIN) }
    }
}

/// Refuses a request from another origin than the server's own and those of `allowed`. If `only_local`, the server
/// must also be addressed as this machine: by name or by address, so that the name of another site that was made
/// to point here is refused (DNS rebinding).
///
/// # Errors
/// With status 403.
pub(crate) fn check(
    asked: &Asked<'_>,
    allowed: &[String],
    only_local: bool,
) -> Result<(), ApiError> {
    let host = asked.host;
    if only_local && !host.is_empty() && !is_local(host) {
        let message = format!(
            "the server was addressed as '{}', but without keys it answers only to localhost and to addresses",
            host.escape_default()
        );
        let advice = format!("{message}; set a key (--key-file), or allow it (--public)");
        return Err(refused(message).logged(advice));
    }
    let Some(origin) = asked.origin else { return Ok(()) };
    let is_own = origin.split_once("://").is_some_and(|(_, authority)| authority == host);
    if is_own || allowed.iter().any(|allowed| allowed == "*" || allowed == origin) {
        return Ok(());
    }
    let message = format!("requests of pages of '{}' are not allowed", origin.escape_default());
    let advice = format!("{message}; --cors ORIGIN allows them");
    Err(refused(message).logged(advice))
}

fn refused(message: String) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "origin_not_allowed", message)
}

/// Whether a host, with or without a port, is `localhost`, a name below it, or an address.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;

    use super::{Asked, check};

    #[test]
    fn another_site_cannot_use_the_models_through_a_browser() {
        let allowed = ["http://localhost:3000".to_owned()];
        let rows = [
            ("127.0.0.1:11434", None, true, true),
            ("localhost:11434", None, true, true),
            ("[::1]:11434", None, true, true),
            ("app.localhost", None, true, true),
            ("", None, true, true),
            ("evil.example", None, true, false),
            ("evil.example:11434", Some("http://evil.example:11434"), true, false),
            ("127.0.0.1.evil.example", None, true, false),
            ("models.example", None, false, true),
            ("models.example", Some("https://models.example"), false, true),
            ("localhost:11434", Some("http://localhost:11434"), true, true),
            ("localhost:11434", Some("http://localhost:3000"), true, true),
            ("localhost:11434", Some("http://localhost:3001"), true, false),
            ("localhost:11434", Some("https://evil.example"), true, false),
            ("localhost:11434", Some("null"), true, false),
        ];
        for (host, origin, only_local, passes) in rows {
            let checked = check(&Asked { host, origin }, &allowed, only_local);
            assert_eq!(checked.is_ok(), passes, "{host} {origin:?}: {checked:?}");
        }
        let any = Asked { host: "localhost", origin: Some("https://any.example") };
        assert!(check(&any, &["*".to_owned()], true).is_ok());
    }

    #[test]
    fn a_request_without_the_header_has_the_host_of_its_address() {
        let request = Request::get("https://models.example/v1/models").body(Body::empty());
        let request = request.expect("a request");
        let asked = Asked::of(&request);
        assert_eq!((asked.host, asked.origin), ("models.example", None));
        assert!(check(&asked, &[], true).is_err(), "another name than this machine's");
    }
}
