//! A schema as its caller wrote it, and what its references lead to.

use std::collections::HashMap;

use serde_json::Value;

use super::keywords::below;

/// A schema and the places in it that references name.
#[derive(Debug)]
pub(super) struct Document<'a> {
    /// Schemas that have an identifier, the outermost schema first.
    resources: Vec<Resource<'a>>,
    /// Numbers of the resources by their roots.
    by_root: HashMap<usize, usize>,
}

/// A schema with an identifier: pointers of references within count from it.
#[derive(Debug)]
struct Resource<'a> {
    root: &'a Value,
    /// Its identifier, as far as it is known.
    id: String,
    anchors: HashMap<&'a str, &'a Value>,
}

/// A schema of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) value: &'a Value,
    /// Number of the innermost resource that it belongs to.
    pub(super) resource: usize,
}

/// What tells a value of a document from all others.
pub(super) fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

impl<'a> Document<'a> {
    /// The document whose outermost schema is `root`.
    pub(super) fn new(root: &'a Value) -> Document<'a> {
        let id = identifier(root).unwrap_or_default().to_owned();
        let outermost = Resource { root, id, anchors: HashMap::new() };
        let by_root = HashMap::from([(address(root), 0)]);
        let mut document = Document { resources: vec![outermost], by_root };
        let mut open = vec![(root, 0)];
        while let Some((schema, outer)) = open.pop() {
            let resource = document.enter(schema, outer);
            for keyword in ["$anchor", "$dynamicAnchor", "$id", "id"] {
                let Some(name) = schema.get(keyword).and_then(Value::as_str) else { continue };
                // An identifier that is a fragment is an anchor in older drafts.
                let name =
                    if keyword.ends_with("id") { name.strip_prefix('#') } else { Some(name) };
                if let Some(name) = name {
                    document.resources[resource].anchors.entry(name).or_insert(schema);
                }
            }
            below(schema, &mut |schema| open.push((schema, resource)));
        }
        document
    }

    /// The outermost schema.
    pub(super) fn root(&self) -> Place<'a> {
        Place { value: self.resources[0].root, resource: 0 }
    }

    /// The resource of a schema within `outer`, which becomes known if the schema has an identifier.
    fn enter(&mut self, schema: &'a Value, outer: usize) -> usize {
        if let Some(known) = self.by_root.get(&address(schema)) {
            return *known;
        }
        let Some(id) = identifier(schema) else { return outer };
        let id = joined(&self.resources[outer].id, id);
        self.resources.push(Resource { root: schema, id, anchors: HashMap::new() });
        self.by_root.insert(address(schema), self.resources.len() - 1);
        self.resources.len() - 1
    }

    /// The place of a value that is directly or indirectly below a schema of the resource `outer`.
    pub(super) fn place(&self, value: &'a Value, outer: usize) -> Place<'a> {
        let resource = self.by_root.get(&address(value)).copied().unwrap_or(outer);
        Place { value, resource }
    }

    /// What a reference in a schema of `resource` leads to.
    ///
    /// # Errors
    /// When that is not in the document.
    pub(super) fn resolve(&self, resource: usize, reference: &str) -> Result<Place<'a>, String> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = match uri {
            "" => Some(resource),
            uri => {
                let id = joined(&self.resources[resource].id, uri);
                let named = |named: &Resource<'_>| named.id == id || named.id == uri;
                self.resources.iter().position(named)
            }
        };
        let outside = || {
            format!(
                "the reference '{reference}' leads to nothing in this schema; schemas of other files have to be \
                 written into its $defs"
            )
        };
        let resource = resource.ok_or_else(outside)?;
        let fragment = percent_decoded(fragment);
        let found = match fragment.as_str() {
            "" => Some(self.place(self.resources[resource].root, resource)),
            pointer if pointer.starts_with('/') => {
                // Some programs count pointers from the file although a schema within has an identifier.
                [resource, 0].into_iter().find_map(|resource| self.at(resource, pointer))
            }
            anchor => {
                let target = self.resources[resource].anchors.get(anchor);
                target.map(|target| self.place(target, resource))
            }
        };
        found.ok_or_else(outside)
    }

    /// The value at a JSON pointer from the root of a resource.
    fn at(&self, resource: usize, pointer: &str) -> Option<Place<'a>> {
        let mut place = Place { value: self.resources[resource].root, resource };
        for segment in pointer.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            let value = match place.value {
                Value::Object(members) => members.get(&segment)?,
                Value::Array(items) => items.get(segment.parse::<usize>().ok()?)?,
                _ => return None,
            };
            place = self.place(value, place.resource);
        }
        Some(place)
    }
}

/// The identifier of a schema, unless it is only an anchor.
fn identifier(schema: &Value) -> Option<&str> {
    let is_draft_4 = || {
        let draft = schema.get("$schema").and_then(Value::as_str);
        draft.is_some_and(|draft| draft.contains("draft-04") || draft.contains("draft-03"))
    };
    let id = match schema.get("$id") {
        Some(id) => id.as_str(),
        None => schema.get("id").filter(|_| is_draft_4()).and_then(Value::as_str),
    };
    id.map(|id| id.trim_end_matches('#')).filter(|id| !id.is_empty() && !id.starts_with('#'))
}

/// A relative reference from the identifier `base`.
fn joined(base: &str, uri: &str) -> String {
    let has_scheme = uri.split_once(':').is_some_and(|(scheme, _)| !scheme.contains('/'));
    if has_scheme || base.is_empty() {
        return uri.to_owned();
    }
    // The end of scheme and host.
    let host = base.find("://").map_or(0, |at| {
        let from = at + "://".len();
        base[from..].find('/').map_or(base.len(), |end| from + end)
    });
    match uri.starts_with('/') {
        true => format!("{}{uri}", &base[..host]),
        false => {
            let end = base[host..].rfind('/').map_or(host, |at| host + at + 1);
            format!("{}{uri}", &base[..end])
        }
    }
}

/// A fragment of a URI without its escapes.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
