// Matmul for few rows: an item computes ROWS rows of two panels, so that it sums one while the sums of the
// other wait. They are neighbours, or a panel of gates and its panel of ups. The text is compiled once for
// each number of rows, with NAME, ROWS and EACH(F), which calls F(0) to F(ROWS - 1).
//
// The sum of an output: over segments of SEGMENT inputs in ascending order, each of them summed in
// ascending order from zero.

#define ROW_START(r)                                                                                \
    global const float *x##r = x + (size_t)X_ROW(min(row + r, a.rows - 1)) * a.x_stride;                   \
    const float scale##r = has_norm ? rms_scale(squares_of(x##r, a.cols), a.cols, eps) : 1.0f;      \
    float normed##r[RUN_LEN];                                                                        \
    VF total0_##r = 0.0f;                                                                           \
    VF total1_##r = 0.0f;                                                                           \
    VF acc0_##r = 0.0f;                                                                             \
    VF acc1_##r = 0.0f;
#define ROW_NEXT(r)                                                                                 \
    total0_##r += acc0_##r;                                                                         \
    total1_##r += acc1_##r;                                                                         \
    acc0_##r = 0.0f;                                                                                \
    acc1_##r = 0.0f;
#define ROW_STEP(r) x##r += RUN_LEN;
#define ROW_NORM(r)                                                                                 \
    for (int i = 0; i < count / 16; i++)                                                            \
        vstore16(vload16(i, x##r) * scale##r * vload16(i, gains), i, normed##r);                    \
    for (int i = count & ~15; i < count; i++)                                                       \
        normed##r[i] = x##r[i] * scale##r * gains[i];
#define INPUT(r) ((VF)(is_normed ? normed##r[at] : x##r[at]))
#define ROW_FMA0(r) acc0_##r = fma(w_value, INPUT(r), acc0_##r);
#define ROW_FMA1(r) acc1_##r = fma(w_value, INPUT(r), acc1_##r);
#define ROW_END(r)                                                                                  \
    if (row + r < a.rows) {                                                                         \
        if (gate)                                                                                   \
            total0_##r = ACTIVATED(gate, total0_##r) * total1_##r;                                  \
        put(&a, row + r, channel, total0_##r, bias, residual, out);                                 \
        if (!gate && channel + PANEL < a.channels)                                                  \
            put(&a, row + r, channel + PANEL, total1_##r, bias, residual, out);                     \
    }
#define MULTIPLY0(j, w)                                                                             \
    {                                                                                               \
        const int at = j;                                                                           \
        const VF w_value = w;                                                                       \
        EACH(ROW_FMA0)                                                                              \
    }
#define MULTIPLY1(j, w)                                                                             \
    {                                                                                               \
        const int at = j;                                                                           \
        const VF w_value = w;                                                                       \
        EACH(ROW_FMA1)                                                                              \
    }

// The sums of all segments.
#define SUM_RUNS(IS_NORMED)                                                                         \
    {                                                                                               \
        const bool is_normed = IS_NORMED;                                                           \
        for (int run = 0; run < runs; run++) {                                                      \
            START(0, panel, 0, run)                                                                 \
            START(1, second, 0, run)                                                                \
            const int count = min(RUN_LEN, a.cols - run * RUN_LEN);                                 \
            if (is_normed) {                                                                        \
                global const float *gains = gain + run * RUN_LEN;                                   \
                EACH(ROW_NORM)                                                                      \
            }                                                                                       \
            for (int w = 0; w < WHOLE(count) / WORD_LEN; w++) {                                     \
                WORD(0, w, 0, MULTIPLY0)                                                            \
                WORD(1, w, 0, MULTIPLY1)                                                            \
            }                                                                                       \
            REST(0, count, 0, MULTIPLY0)                                                            \
            REST(1, count, 0, MULTIPLY1)                                                            \
            EACH(ROW_STEP)                                                                          \
            if ((run + 1) % (SEGMENT / RUN_LEN) == 0 || run + 1 == runs) {                          \
                EACH(ROW_NEXT)                                                                      \
            }                                                                                       \
        }                                                                                           \
    }

kernel void NAME(MATMUL_PARAMETERS)
{
    MATMUL_ARGUMENTS(get_global_id(ROW_DIM), ROWS)
    const int channel = get_global_id(CHANNEL_DIM) * (gate ? PANEL : 2 * PANEL);
    if (row >= a.rows || channel >= a.channels)
        return;
    const size_t panel_len = (size_t)(a.cols / BLOCK) * RECORD;
    global const uint *panel = weight + (a.first + channel) / PANEL * panel_len;
    global const uint *second = panel + (gate ? a.channels / PANEL : 1) * panel_len;
    EACH(ROW_START)
    const int runs = (a.cols + RUN_LEN - 1) / RUN_LEN;
    if (has_norm)
        SUM_RUNS(true)
    else
        SUM_RUNS(false)
    EACH(ROW_END)
}

#undef ROW_START
#undef ROW_NEXT
#undef ROW_STEP
#undef ROW_NORM
#undef INPUT
#undef SUM_RUNS
#undef ROW_FMA0
#undef ROW_FMA1
#undef ROW_END
#undef MULTIPLY0
#undef MULTIPLY1
