// Matmul for many rows on a CPU: an item decodes a segment of a panel into its own memory and
// multiplies TILE_ROWS rows with it, ROWS at a time. The sums are those of matmul.cl.

#define ROW_START(r)                                                                                \
    global const float *x##r =                                                                      \
        x + (size_t)X_ROW(min(row + tile + r, a.rows - 1)) * a.x_stride + start;                    \
    VF acc##r = 0.0f;
#define ROW_FMA(r) acc##r = fma(w, (VF)(x##r[at]), acc##r);
#define ROW_NEXT(r) total[tile + r] += acc##r;
#define STORE(j, w) vstore16(w, (j), values + run_at * PANEL);

kernel void NAME(MATMUL_PARAMETERS)
{
    MATMUL_ARGUMENTS(get_global_id(ROW_DIM), TILE_ROWS)
    const int index = get_global_id(CHANNEL_DIM);
    const int channel = index * PANEL;
    if (row >= a.rows || channel >= a.channels)
        return;
    global const uint *panel =
        weight + (size_t)(a.first / PANEL + index) * (a.cols / BLOCK) * RECORD;
    const int rows_here = min(TILE_ROWS, a.rows - row);
    VF total[TILE_ROWS];
    for (int r = 0; r < TILE_ROWS; r++)
        total[r] = 0.0f;
#if FORMAT != 0
    float values[SEGMENT * PANEL];
#endif
    for (int start = 0; start < a.cols; start += SEGMENT) {
        const int len = min(SEGMENT, a.cols - start);
#if FORMAT == 0
        global const float *values = (global const float *)panel + (size_t)start * PANEL;
#else
        for (int run_at = 0; run_at < len; run_at += RUN_LEN) {
            const int count = min(RUN_LEN, len - run_at);
            RUN(panel, 0, (start + run_at) / RUN_LEN, count, STORE)
        }
#endif
        for (int tile = 0; tile < rows_here; tile += ROWS) {
            EACH(ROW_START)
            for (int at = 0; at < len; at++) {
                const VF w = vload16(at, values);
                EACH(ROW_FMA)
            }
            EACH(ROW_NEXT)
        }
    }
    for (int r = 0; r < rows_here; r++)
        put(&a, row + r, channel, total[r], bias, residual, out);
}

#undef ROW_START
#undef ROW_FMA
#undef ROW_NEXT
#undef STORE
