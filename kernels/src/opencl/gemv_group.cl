// Matmul for few rows, whose segments are shared by the items of a work-group, for GPUs. The text is
// compiled once for each number of rows, with NAME and ROWS. A group has PANEL × slices items, and at
// most SLICES_MAX slices: an item sums segments of one channel, and those of slice 0 add them up in order.

#define MULTIPLY(j, w)                                                                              \
    {                                                                                               \
        const float w_value = w;                                                                    \
        for (int r_ = 0; r_ < ROWS; r_++)                                                           \
            acc[r_] = fma(w_value, from[(size_t)min(row + r_, a.rows - 1) * a.x_stride + (j)],      \
                          acc[r_]);                                                                 \
    }

kernel void NAME(MATMUL_PARAMETERS)
{
    MATMUL_ARGUMENTS
    local float sums[SLICES_MAX * ROWS * PANEL];
    const int lane = get_local_id(0);
    const int slice = get_local_id(1);
    const int slices = get_local_size(1);
    const int index = get_group_id(0);
    const int row = get_group_id(1) * ROWS;
    global const uint *panel =
        weight + (size_t)(a.first / PANEL + index) * (a.cols / BLOCK) * RECORD;
    float total[ROWS];
    for (int r = 0; r < ROWS; r++)
        total[r] = 0.0f;
    const int segments = (a.cols + SEGMENT - 1) / SEGMENT;
    for (int first = 0; first < segments; first += slices) {
        float acc[ROWS];
        for (int r = 0; r < ROWS; r++)
            acc[r] = 0.0f;
        const int start = (first + slice) * SEGMENT;
        const int end = min(start + SEGMENT, a.cols);
        for (int at = start; at < end; at += RUN_LEN) {
            global const float *from = x + at;
            const int count = min(RUN_LEN, end - at);
            RUN(panel, lane, at / RUN_LEN, count, MULTIPLY)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = 0; r < ROWS; r++)
            sums[(slice * ROWS + r) * PANEL + lane] = acc[r];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (slice == 0)
            for (int r = 0; r < ROWS; r++)
                for (int s = 0; s < min(slices, segments - first); s++)
                    total[r] += sums[(s * ROWS + r) * PANEL + lane];
    }
    if (slice == 0)
        for (int r = 0; r < ROWS; r++)
            put_one(&a, row + r, index * PANEL + lane, total[r], bias, residual, out);
}

#undef MULTIPLY
