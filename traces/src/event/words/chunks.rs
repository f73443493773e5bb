//! Events of chunks as fields: their routes, what they need of devices, and the rows of their experts.

use super::super::{ExpertRows, Limited, NameId, Need, Rated, Routed};
use super::Fields;

impl Fields {
    #[inline]
    pub(super) fn experts(of: &ExpertRows) -> Fields {
        let [id, other, since, chunk, request, both, bytes, flops] = of.words();
        let (epoch, rows) = (both as u32, (both >> 32) as u32);
        Fields {
            kind: 16,
            sub: of.model,
            stage: of.experts,
            layer: of.layer,
            role: 0,
            phase: 0,
            name: of.first,
            id,
            other,
            since,
            chunk,
            request,
            epoch,
            rows,
            bytes,
            flops,
        }
    }

    pub(super) fn expert_rows(&self) -> ExpertRows {
        let Fields { id, other, since, chunk, request, bytes, flops, .. } = *self;
        let both = u64::from(self.epoch) | u64::from(self.rows) << 32;
        ExpertRows {
            model: self.sub,
            layer: self.layer,
            experts: self.stage,
            first: self.name,
            rows: ExpertRows::of_words([id, other, since, chunk, request, both, bytes, flops]),
        }
    }

    #[inline]
    pub(super) fn limited(of: &Limited) -> Fields {
        Fields {
            kind: 15,
            sub: of.stream.is_some().into(),
            chunk: of.chunk,
            request: of.stream.unwrap_or(0),
            bytes: of.slack,
            ..Fields::default()
        }
    }

    #[inline]
    pub(super) fn routed(of: &Routed) -> Fields {
        Fields {
            kind: 17,
            sub: of.is_due.into(),
            chunk: of.chunk,
            name: of.route.0,
            other: of.alone.0.into(),
            bytes: of.end,
            flops: of.alone_end,
            ..Fields::default()
        }
    }

    pub(super) fn route(&self) -> Option<Routed> {
        Some(Routed {
            chunk: self.chunk,
            route: NameId(self.name),
            end: self.bytes,
            alone: NameId(self.other.try_into().ok()?),
            alone_end: self.flops,
            is_due: self.sub > 0,
        })
    }

    #[inline]
    pub(super) fn rated(of: &Rated) -> Fields {
        Fields {
            kind: 19,
            sub: of.is_ready.into(),
            chunk: of.chunk,
            name: of.route.0,
            bytes: of.end,
            flops: of.alone,
            since: of.busy,
            ..Fields::default()
        }
    }

    pub(super) fn as_rated(&self) -> Rated {
        Rated {
            chunk: self.chunk,
            route: NameId(self.name),
            end: self.bytes,
            alone: self.flops,
            busy: self.since,
            is_ready: self.sub > 0,
        }
    }

    #[inline]
    pub(super) fn need(of: &Need) -> Fields {
        let [id, other, since, request, bytes] = of.times;
        let (epoch, name) = (of.path as u32, (of.path >> 32) as u32);
        let (chunk, rows, flops) = (of.chunk, of.count, 0);
        Fields {
            kind: 18,
            chunk,
            rows,
            id,
            other,
            since,
            request,
            bytes,
            flops,
            epoch,
            name,
            ..Fields::default()
        }
    }

    pub(super) fn as_need(&self) -> Need {
        let Fields { chunk, rows, id, other, since, request, bytes, epoch, name, .. } = *self;
        let path = u64::from(epoch) | u64::from(name) << 32;
        Need { chunk, count: rows, times: [id, other, since, request, bytes], path }
    }
}
