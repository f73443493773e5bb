//! The solver against the decisions of HeteroInfer (SOSP 2025), table 3.

use super::*;

/// GPU and NPU of a Snapdragon 8 Gen 3, by equations fitted to the table. The GPU takes the smaller
/// of its GEMM and its GEMV time; the NPU has its operands in the better order.
fn phone(n: usize, k: usize) -> Case {
    let gpu = |n: usize, k: usize, m: usize| {
        let (weights, m) = ((n * k) as f64, m as f64);
        let gemm = 1083.0 + 0.160e-3 * weights + 2.0 * weights * m / 1.215e6;
        let gemv = 279.0
            + weights / 2.0 / 43_300.0
            + if m > 1.0 { 2.0 * weights * m / 0.365e6 } else { 0.0 };
        gemm.min(gemv)
    };
    let npu = |n: usize, k: usize, m: usize| {
        let (weights, padded) = ((n * k) as f64, m.next_multiple_of(32) as f64);
        // The aspect ratio is that of the whole weight: a row cut does not change it.
        match k > 4096 {
            false => 2.0 * weights * padded / 4.56e6,
            true => 2.0 * weights * (padded + 95.0) / (6.153e6 * 4096.0 / 14_336.0),
        }
    };
    let laws = Laws {
        graph: matmul(n, k),
        laws: vec![Arc::new(gpu), Arc::new(npu)],
        sync: Duration::from_nanos(14_500),
        // T_copy = 4·N·M / B_g for fp16; the solver counts 8 bytes per value (fp32).
        bytes_per_us: 2.0 * 43_300.0,
    };
    let devices = vec![device(DeviceKind::Gpu, &[]), device(DeviceKind::Npu, &SIZES)];
    Case { laws, devices, rows: 0 }
}

fn decision(n: usize, k: usize, rows: usize) -> Candidate {
    let case = Case { rows, ..phone(n, k) };
    case.solve().best().expect("a way").clone()
}

/// The decisions that the table determines. It does not determine two of its entries. Lines 1 to 3
/// (decode on the NPU's integer path) have one time per weight, so the time of a share is unknown. For
/// the first 16 lengths of 193–255, the equations prefer 128 + 64 rows on the NPU and the rest on the
/// GPU, unless a second graph has a cost, which the table does not give.
#[test]
fn the_solver_decides_as_hetero_infer() {
    let npu_only = |c: &Candidate| c.parts.len() == 1 && c.parts[0].device == DeviceId(1);
    // 128 and 256: NPU. Up to 255: NPU with padding. A faster cut gains less than the rounding of the
    // table.
    for (rows, gain_max) in [(128, 0.0), (224, 0.0), (240, 0.03), (255, 0.03), (256, 0.03)] {
        let solution = Case { rows, ..phone(4096, 4096) }.solve();
        let whole = solution.candidates.iter().find(|c| npu_only(c)).expect("the NPU alone");
        let best = solution.best().expect("a way");
        let gain = 1.0 - best.total().as_secs_f64() / whole.total().as_secs_f64();
        assert!(gain <= gain_max, "{rows}: {gain} by {best}");
    }
    // 257–272: 256 rows on the NPU, the rest on the GPU.
    for rows in [257, 264, 272] {
        let best = decision(4096, 4096, rows);
        assert_eq!(best.cut, Cut::Sequence, "{rows}: {best}");
        let npu = best.parts.iter().find(|p| p.device == DeviceId(1)).expect("the NPU");
        assert_eq!((npu.part.rows.clone(), &npu.part.graphs[..]), (Some(0..256), &[256][..]));
    }
    // FFN-down above a standard size: a row cut with padding.
    for rows in [300, 370] {
        let best = decision(4096, 14_336, rows);
        assert_eq!(best.cut, Cut::Hybrid, "{rows}: {best}");
    }
    // FFN-down: a row cut of 2 : 3.
    let best = decision(4096, 14_336, 256);
    let npu = best.parts.iter().position(|p| p.device == DeviceId(1)).expect("the NPU");
    let share = shares(&best.parts, 4096)[npu] as f64 / 4096.0;
    assert_eq!(best.cut, Cut::Row, "{best}");
    assert!((share - 0.6).abs() < 0.04, "{share}");
}
