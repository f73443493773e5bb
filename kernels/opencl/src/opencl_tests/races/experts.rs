//! Kernels of mixtures of experts in the simulator.

use super::*;
use crate::pack::panels;

#[test]
fn choices_of_experts_and_their_sums_do_not_race() {
    let (rows, experts, groups, used, width) = (3, 300, 3, 2, 70);
    let choose = |local, is_grouped: bool| {
        let groups = if is_grouped { groups } else { 0 };
        let of = view(rows, experts).into_iter().chain([Floats(experts)]);
        let of = of.chain([Floats(rows * (experts + groups))]).chain(view(rows, 2 * used));
        let sizes = [rows, experts, used, 0, 1, groups, 2, 1].map(Int);
        let args = of.chain(sizes).chain([6.1e-5, 2.5].map(Float));
        Launch::new("choose_experts", [1, rows, 1], [local, 1], args)
    };
    let in_groups = [true, false].map(|is_grouped| choose(256, is_grouped));
    check(Family::RowsGroup, KvDtype::F32, in_groups);

    let route = || view(rows, 2 * used);
    let table = Words(4 * (experts + 1 + rows * used), 0);
    let sort = route().into_iter().chain([table]).chain([rows, experts, used, experts, 0].map(Int));
    let sort = Launch::new("sort_experts", [5, 1, 1], [64, 1], sort);
    let weigh = view(rows, width).into_iter().chain(route()).chain(view(rows * used, width));
    let weigh = weigh.chain([rows * used, width, used].map(Int));
    let weigh = Launch::new("weigh_rows", [2, rows * used, 1], [64, 1], weigh);
    let mix = view(rows, used * width).into_iter().chain(route()).chain(view(rows, width));
    let mix = mix.chain([rows, width, used, 1].map(Int));
    let mix = Launch::new("mix_experts", [2, rows, 1], [64, 1], mix);
    check(Family::Rows, KvDtype::F32, [choose(64, true), sort, weigh, mix]);
}

#[test]
fn products_of_experts_do_not_race() {
    let (channels, experts, used, slots) = (40, 3, 2, 14);
    let all = [DType::F32, DType::Q4_0, DType::F16, DType::Q6K];
    for &dtype in cases(&all[..2], &all) {
        let cols = 64usize.next_multiple_of(dtype.block_len());
        let stored = Stored { dtype, bytes: &[], rows: channels, cols };
        let product = |is_sorted: usize, [x_slots, to_slots]: [usize; 2]| {
            // The second expert has no slots, and the slots of the third are in two tiles.
            let places = [0, 3, 3, 14, 5, 1, 0, 2, 6, 3, 4, 13, 12, 7, 9, 8, 11, 10];
            let out = || Floats(slots * channels);
            let buffers = [Words(experts * stored.packed_bytes(), 0x0101_0101)];
            let buffers = buffers.into_iter().chain([Floats(slots * cols)]);
            let buffers = buffers.chain([Floats(experts * channels), out(), out()]);
            let sizes = [cols, slots, 0, channels, 0, cols, 1, 0, 0, 0, 0, channels, 32].map(Int);
            let no_norm = [Floats(cols), Int(0), Float(0.0), Int(0)];
            let route = view(slots / used, 2 * used).into_iter().chain([Numbers(places.to_vec())]);
            let route = route.chain([Floats(experts), Int(1)]);
            let of = [experts, used, panels(channels), channels, is_sorted, x_slots, to_slots];
            let of = of.into_iter().chain([experts, 0, 0]);
            let args = buffers.chain(sizes).chain(no_norm).chain(route).chain(of.map(Int));
            args.collect::<Vec<_>>()
        };
        let tiles = panels(channels);
        let alone = |kernel, slices| {
            Launch::new(kernel, [tiles, slots, 1], [16, slices], product(0, [used, 0]))
        };
        let sorted = |of| Launch::new("gemv_group_8", [tiles, 4, 1], [16, 16], product(1, of));
        let many = Launch::new("matmul_group", [1, 3, 1], [16, 8], product(1, [used, 0]));
        let last = Launch::new("matmul_group", [1, 3, 1], [16, 8], product(1, [0, 1]));
        let few = [alone("gemv_group_1_half", 8), alone("gemv_group_1", 16)];
        let launches = few.into_iter().chain([sorted([used, 0]), sorted([0, 1]), many, last]);
        check(Family::experts_group(dtype), KvDtype::F32, launches);
    }
}
