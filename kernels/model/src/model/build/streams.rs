//! Several streams of hidden states, of which a layer computes the first and corrects the others by it (AltUp; Baykal et al., 2023).

use super::super::ModelError;
use super::Builder;
use super::weights::Joined;
use crate::graph::ValueId;
use crate::op::Op;

/// Streams of hidden states.
pub(crate) const STREAMS: usize = 4;

impl Builder<'_> {
    /// Makes the streams beside the first one, `x`: products with the parts of a matrix, as long as `x`.
    pub(crate) fn add_streams(&mut self, x: ValueId) -> Result<(), ModelError> {
        let width = self.config.width;
        let parts = self.parts_or_whole("altup_proj", x, [("altup_proj", width); STREAMS - 1])?;
        let streams = parts.map(|part| self.push(Op::WithLength, &[part, x], width, "stream"));
        self.streams = streams.to_vec();
        Ok(())
    }

    /// What the current layer expects of each stream, of which `x` is the first: the stream and a weighted sum of all, with
    /// weights that depend on `x`.
    pub(crate) fn predicted_streams(&mut self, x: ValueId) -> Result<Vec<ValueId>, ModelError> {
        let routed = self.routed(x)?;
        let weights = self.linear("altup_predict_coef", routed, STREAMS * STREAMS)?;
        let streams: Vec<ValueId> = [x].into_iter().chain(self.streams.clone()).collect();
        let predicted = streams.iter().enumerate().map(|(at, stream)| {
            let inputs = [&[*stream, weights], &streams[..]].concat();
            let op = Op::WeightedSum { first: at * STREAMS };
            self.push(op, &inputs, self.config.width, "predicted_stream")
        });
        Ok(predicted.collect())
    }

    /// Corrects each stream by the distance of what the layer has computed from what it expected of the first one: once, and
    /// once more times a weight that depends on what it has computed.
    pub(crate) fn corrected_streams(
        &mut self,
        predicted: &[ValueId],
        computed: ValueId,
    ) -> Result<Vec<ValueId>, ModelError> {
        let width = self.config.width;
        let routed = self.routed(computed)?;
        let weights = self.linear("altup_correct_coef", routed, STREAMS)?;
        let negated = Op::Scale { factor: -1.0 };
        let negated = self.push(negated, &predicted[..1], width, "negated_stream");
        let distance = self.push(Op::Add, &[negated, computed], width, "stream_distance");
        let corrected = predicted.iter().enumerate().map(|(at, stream)| {
            let once = match at {
                0 => computed,
                _ => self.push(Op::Add, &[distance, *stream], width, "stream_residual"),
            };
            let op = Op::WeightedSum { first: at };
            self.push(op, &[once, weights, distance], width, "corrected_stream")
        });
        Ok(corrected.collect())
    }

    /// The mean of all streams, of which `x` is the first: products of the others with the parts of a matrix, as long as `x`.
    pub(crate) fn joined_streams(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        const NAME: &str = "altup_unembd_proj";
        let width = self.config.width;
        let mut sum = x;
        for (at, stream) in std::mem::take(&mut self.streams).into_iter().enumerate() {
            let rows = at * width..(at + 1) * width;
            let joined = Joined { name: NAME, all: (STREAMS - 1) * width, rows };
            let part = self.joined_part(NAME, stream, &joined)?;
            let part = self.push(Op::WithLength, &[part, x], width, "unembedded_stream");
            sum = self.push(Op::Add, &[part, sum], width, "stream_sum");
        }
        let mean = Op::Scale { factor: 1.0 / STREAMS as f32 };
        Ok(self.push(mean, &[sum], width, "stream_mean"))
    }

    /// A number between −1 and 1 for each stream: tanh(router(norm(x)) / width).
    fn routed(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let normed = self.norm("altup_router_norm", x)?;
        let routed = self.linear("altup_router", normed, STREAMS)?;
        let scale = Op::Scale { factor: 1.0 / self.config.width as f32 };
        let scaled = self.push(scale, &[routed], STREAMS, "altup_router_scale");
        Ok(self.push(Op::SoftCap { cap: 1.0 }, &[scaled], STREAMS, "altup_router_tanh"))
    }
}
