// Matmul for few rows: an item computes ROWS rows of a panel's channels. The text is compiled once for
// each number of rows, with NAME, ROWS and EACH(F), which calls F(0) to F(ROWS - 1).
//
// The sum of an output: over segments of SEGMENT inputs in ascending order, each of them summed in
// ascending order from zero.

#define ROW_START(r)                                                                                \
    global const float *x##r = x + (size_t)min(row + r, a.rows - 1) * a.x_stride;                   \
    VF total##r = 0.0f;                                                                             \
    VF acc##r = 0.0f;
#define ROW_NEXT(r)                                                                                 \
    total##r += acc##r;                                                                             \
    acc##r = 0.0f;
#define ROW_STEP(r) x##r += RUN_LEN;
#define ROW_FMA(r) acc##r = fma(w_value, (VF)(x##r[at]), acc##r);
#define ROW_END(r)                                                                                  \
    if (row + r < a.rows)                                                                           \
        put(&a, row + r, channel, total##r, bias, residual, out);
#define MULTIPLY(j, w)                                                                              \
    {                                                                                               \
        const int at = j;                                                                           \
        const VF w_value = w;                                                                       \
        EACH(ROW_FMA)                                                                               \
    }

kernel void NAME(MATMUL_PARAMETERS)
{
    MATMUL_ARGUMENTS
    const int row = get_global_id(ROW_DIM) * ROWS;
    const int index = get_global_id(CHANNEL_DIM);
    const int channel = index * PANEL;
    if (row >= a.rows || channel >= a.channels)
        return;
    global const uint *panel =
        weight + (size_t)(a.first / PANEL + index) * (a.cols / BLOCK) * RECORD;
    EACH(ROW_START)
    const int runs = (a.cols + RUN_LEN - 1) / RUN_LEN;
    for (int run = 0; run < runs; run++) {
        const int count = min(RUN_LEN, a.cols - run * RUN_LEN);
        RUN(panel, 0, run, count, MULTIPLY)
        EACH(ROW_STEP)
        if ((run + 1) % (SEGMENT / RUN_LEN) == 0 || run + 1 == runs) {
            EACH(ROW_NEXT)
        }
    }
    EACH(ROW_END)
}

#undef ROW_START
#undef ROW_NEXT
#undef ROW_STEP
#undef ROW_FMA
#undef ROW_END
#undef MULTIPLY
