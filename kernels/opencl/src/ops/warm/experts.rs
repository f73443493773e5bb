//! First launches of the kernels of mixtures of experts.

use super::WIDTH;
use crate::error::OpenClError;
use crate::ops::experts::{ExpertMatrices, ExpertRoom, Experts};
use crate::ops::kernels::Kernels;
use crate::ops::route::{Mix, Route};
use crate::ops::stack::Stack;
use crate::ops::views::{F32, View};
use crate::session::Buffer;
use lapwing_model::formats::DType;
use lapwing_model::op::{Activation, Curve, ExpertForm, RouteOp, RouterScore};

/// Experts of the operands.
const COUNT: usize = 2;

/// Rows that bring every kernel into use: one row alone, and so many for each expert.
const ROWS: [usize; 6] = [1, COUNT, 2 * COUNT, 4 * COUNT, 8 * COUNT, 17 * COUNT];

impl Kernels {
    /// Launches the kernels that do not depend on a format.
    pub(super) fn warm_routes(&mut self, x: &Buffer, y: &Buffer) -> Result<(), OpenClError> {
        let view = |buffer| View { buffer, at: 0, stride: WIDTH };
        let op = RouteOp {
            used: 1,
            score: RouterScore::Softmax,
            bias: None,
            groups: None,
            is_normalised: false,
            scale: 1.0,
        };
        let (rows, width, used) = (1, WIDTH, 1);
        let scores = self.session.buffer(Route::scores_bytes(&op, rows, COUNT), "warming up")?;
        self.route(&Route {
            op: &op,
            x: view(x),
            rows,
            experts: COUNT,
            bias: None,
            scores: &scores,
            out: view(y),
        })?;
        let (made, route, out) = (view(x), view(x), view(y));
        self.mix(&Mix { made, route, rows, width, used, is_weighted: true, out })?;
        let views = [view(x), view(x), view(y)];
        self.elementwise("gated_relu", views, [rows, width], &[])?;
        self.elementwise("gated_clamped", views, [rows, width], &[1.0; 4])
    }

    /// Launches the kernels for products of experts with weights of a format, and those for sorted rows.
    pub(super) fn warm_experts(&mut self, dtype: DType, x: &Buffer) -> Result<(), OpenClError> {
        const WHAT: &str = "warming up";
        let session = std::sync::Arc::clone(&self.session);
        let stack = Stack::new(&session, dtype, [COUNT, WIDTH, WIDTH], WHAT)?;
        let bytes = vec![0; WIDTH * dtype.row_bytes(WIDTH).unwrap_or(0)];
        (0..COUNT).try_for_each(|expert| stack.put(&session, expert, &bytes))?;
        let of = ExpertMatrices { stack: &stack, first: 0, bias: None, factors: None };
        for (rows, weighs_input) in ROWS.into_iter().map(|rows| (rows, rows == 1)) {
            let out = self.session.buffer(rows * WIDTH * F32, WHAT)?;
            // All rows are the same, with numbers and weights of 0.
            let same = View { buffer: x, at: 0, stride: 0 };
            let form = match rows {
                1 => ExpertForm::Plain(Curve::ReluSquared),
                _ => ExpertForm::Gated(Activation::Silu),
            };
            let job = Experts {
                x: same,
                rows,
                route: same,
                used: 1,
                all: COUNT,
                own: [0, COUNT],
                gate: (rows > 1).then_some(of),
                up: of,
                form,
                down: of,
                weighs_input,
                out: View { buffer: &out, at: 0, stride: WIDTH },
            };
            let [gate, up, weighted, table] =
                job.room_bytes().map(|bytes| session.buffer(bytes, WHAT));
            let (gate, up, weighted, table) = (gate?, up?, weighted?, table?);
            self.experts(&job, ExpertRoom([&gate, &up, &weighted, &table]))?;
        }
        self.session.finish()
    }
}
