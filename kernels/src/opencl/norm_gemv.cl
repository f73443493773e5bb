// Matmul of one row that is normed first, for GPUs: one launch in place of a norm, a matmul and a gated
// activation. The text is compiled with NAME, SLICES and GATED: if that is 1, the channels of a second
// matrix follow those of the first from channel `second` on, and an output is activation(first) · second.
//
// The sums have the order of rms_norm in rows_group.cl and of gemv_group.cl. A group holds the normed row
// in local memory, which has at most AHEAD values for each of its items, and computes several panels, so
// that few groups norm the row.

#define ITEMS (PANEL * SLICES)
#define MATRICES (1 + GATED)

#define KEEP(j, w) word[(j) % WORD_LEN] = w;
#define MULTIPLY_REST0(j, w) acc[0] = fma(w, normed[at + (j)], acc[0]);
#define MULTIPLY_REST1(j, w) acc[1] = fma(w, normed[at + (j)], acc[1]);
#define MULTIPLY_WORD(m)                                                                            \
    UNROLL for (int i = 0; i < WORD_LEN / 4; i++)                                                   \
    {                                                                                               \
        const float4 four = inputs[i];                                                              \
        acc[m] = fma(word[4 * i], four.x, acc[m]);                                                  \
        acc[m] = fma(word[4 * i + 1], four.y, acc[m]);                                              \
        acc[m] = fma(word[4 * i + 2], four.z, acc[m]);                                              \
        acc[m] = fma(word[4 * i + 3], four.w, acc[m]);                                              \
    }

kernel GROUP_OF(PANEL, SLICES) void NAME(MATMUL_PARAMETERS, global const float *restrict gain,
                                         local float *normed, float eps, int second, int is_gelu)
{
    MATMUL_ARGUMENTS
    local float sums[MATRICES * ITEMS > NORM_ITEMS ? MATRICES * ITEMS : NORM_ITEMS];
    const int lane = get_local_id(0);
    const int slice = get_local_id(1);
    const int item = slice * PANEL + lane;

    float values[AHEAD];
    float gains[AHEAD];
    UNROLL for (int k = 0; k < AHEAD; k++)
    {
        const int i = item + k * ITEMS;
        values[k] = i < a.cols ? x[i] : 0.0f;
        gains[k] = i < a.cols ? gain[i] : 0.0f;
        if (i < a.cols)
            normed[i] = values[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int p = item; p < NORM_ITEMS; p += ITEMS) {
        float squares = 0.0f;
        for (int i = p; i < a.cols; i += NORM_ITEMS)
            squares = fma(normed[i], normed[i], squares);
        sums[p] = squares;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int other = NORM_ITEMS / 2; other > 0; other /= 2) {
        for (int p = item; p < other; p += ITEMS)
            sums[p] += sums[p + other];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float scale = 1.0f / sqrt(sums[0] / (float)a.cols + eps);
    UNROLL for (int k = 0; k < AHEAD; k++)
    {
        if (item + k * ITEMS < a.cols)
            normed[item + k * ITEMS] = values[k] * scale * gains[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const size_t panel_len = (size_t)(a.cols / BLOCK) * RECORD;
    const int panels = (a.channels + PANEL - 1) / PANEL;
    const int segments = (a.cols + SEGMENT - 1) / SEGMENT;
    const int end = min((slice + 1) * SEGMENT, a.cols);
    for (int index = get_group_id(0); index < panels; index += get_num_groups(0)) {
        global const uint *panel = weight + (a.first / PANEL + index) * panel_len;
#if GATED
        global const uint *other_panel = panel + second / PANEL * panel_len;
#endif
        float acc[MATRICES];
        UNROLL for (int m = 0; m < MATRICES; m++)
            acc[m] = 0.0f;
        RUNS_AHEAD for (int at = slice * SEGMENT; at < end; at += RUN_LEN)
        {
            const int count = min(RUN_LEN, end - at);
            START(0, panel, lane, at / RUN_LEN)
#if GATED
            START(1, other_panel, lane, at / RUN_LEN)
#endif
            UNROLL for (int w = 0; w < RUN_LEN / WORD_LEN; w++)
            {
                if (w < WHOLE(count) / WORD_LEN) {
                    local const float4 *inputs =
                        (local const float4 *)(normed + at + w * WORD_LEN);
                    float word[WORD_LEN];
                    WORD(0, w, lane, KEEP)
                    MULTIPLY_WORD(0)
#if GATED
                    WORD(1, w, lane, KEEP)
                    MULTIPLY_WORD(1)
#endif
                }
            }
            REST(0, count, lane, MULTIPLY_REST0)
#if GATED
            REST(1, count, lane, MULTIPLY_REST1)
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL for (int m = 0; m < MATRICES; m++)
            sums[(slice * MATRICES + m) * PANEL + lane] = acc[m];
        barrier(CLK_LOCAL_MEM_FENCE);
        float total = 0.0f;
        if (slice < MATRICES) {
            _Pragma("unroll 8") for (int s = 0; s < segments; s++)
                total += sums[(s * MATRICES + slice) * PANEL + lane];
        }
#if GATED
        barrier(CLK_LOCAL_MEM_FENCE);
        if (slice < MATRICES)
            sums[item] = total;
        barrier(CLK_LOCAL_MEM_FENCE);
        const float gate = sums[lane];
        total = (is_gelu ? GELU(gate) : SILU(gate)) * sums[PANEL + lane];
#endif
        if (slice == 0)
            put_one(&a, 0, index * PANEL + lane, total, bias, residual, out);
    }
}

#undef ITEMS
#undef MATRICES
#undef KEEP
#undef MULTIPLY_REST0
#undef MULTIPLY_REST1
#undef MULTIPLY_WORD
