//! Manual placement of ops on devices.
//!
//! # Paths of ops
//! | path | ops |
//! |---|---|
//! | `embed` | embedding |
//! | `layers.L.attn.norm` | norm before attention |
//! | `layers.L.attn.q`, `.k`, `.v` | projections |
//! | `layers.L.attn.q_norm`, `.k_norm` | norms of query and key heads |
//! | `layers.L.attn.q_a`, `.q_a_norm`, `.kv_a`, `.kv_a_norm` | latent rows of latent attention, and their norms |
//! | `layers.L.attn.q_nope`, `.q_pe`, `.k_nope`, `.k_pe` | parts of queries and keys, of which `pe` rotates |
//! | `layers.L.attn.join_q`, `.join_k` | the two parts of each head, joined |
//! | `layers.L.attn.rope_q`, `.rope_k` | rotary embedding |
//! | `layers.L.attn.attend` | KV cache update and attention |
//! | `layers.L.attn.output`, `.post_norm` | projection and norm after attention |
//! | `layers.L.attn.select`, `.select_residual` | selection of the rows whose logits are computed, in the last layer |
//! | `layers.L.attn.residual` | residual add of the layer's input |
//! | `layers.L.ffn.norm`, `.gate`, `.up`, `.gated`, `.down`, `.post_norm`, `.residual` | feed-forward |
//! | `layers.L.router.logits`, `.norm`, `.scale` | logits of the router, and what comes before and after them |
//! | `layers.L.experts.choose`, `.compute`, `.mix` | choice of experts, their blocks, and the sum of what they make |
//! | `layers.L.shared.gate`, `.up`, `.gated`, `.down`, `.sum`, `.mean` | block of all rows beside the experts, and its sum with theirs |
//! | `layers.L.shared.row_gate`, `.row_gates`, `.weighted` | gates of that block, one for each row |
//! | `output_norm` | norm after the last layer |
//! | `output`, `output.scale`, `output.cap` | logits, their factor and their soft cap |
//!
//! L is the index of the layer, from 0. A pattern is a path or a prefix of one that ends before a
//! dot; `*` matches any one segment. `layers.*.ffn=npu` places all feed-forward ops on the NPU, and
//! `layers.*.experts=cpu` all experts on the CPU.

mod path;
mod placed;
mod places;

pub use path::path;
pub use placed::Placed;
pub use places::Places;
