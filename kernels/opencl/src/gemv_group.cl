// Matmul for few rows, whose segments are shared by the items of a work-group, for GPUs. The text is
// compiled for each number of rows and panels, with NAME, ROWS, PANELS and SLICES, which is at least the
// number of segments: of a group's PANEL × SLICES items, each sums one segment of one channel of each panel.
//
// The rows of x begin at multiples of 4 values.

// Sums of an item; those of panel p begin at p * ROWS.
#define SUMS (ROWS * PANELS)
// Sums of each item that are in local memory at a time.
#define PART (SUMS < 4 ? SUMS : 4)
// Panels of gates of a group; it computes as many of ups. Groups of one panel have no gates. A group of
// several panels has at least SUMS slices, or GATES * ROWS if it has gates: each slice writes one output.
#define GATES ((PANELS + 1) / 2)
// Values of an item's sums, or of sums of squares, in local memory.
#define SUMS_LEN (SLICES * PART * PANEL)
#define SHARED_LEN (SUMS_LEN > ROWS * ITEMS ? SUMS_LEN : ROWS * ITEMS)

#define PANEL_AT(p)                                                                                 \
    (!gate ? min(first_panel + (p), last_panel)                                                     \
           : min(first_panel + (p) % GATES, last_panel) + ((p) < GATES ? 0 : a.channels / PANEL))
#define BEGIN(p) START(p, weight + (size_t)PANEL_AT(p) * panel_len, lane, at / RUN_LEN)
#define KEEP(j, w) words[of_panel + (j) % WORD_LEN] = w;
// The words of a run are loaded by 16 bytes: a compiler with few registers would delay loads of single
// words until those before are decoded, and then few bytes are on their way from memory.
#if BLOCK > 1
#define LOAD_RUN(p)                                                                                 \
    UNROLL for (int i = 0; i < RUN_WORDS / 4; i++)                                                  \
        raw[(p) * (RUN_WORDS / 4) + i] = ((global const uint4 *)(QUANTS(p) + lane * RUN_WORDS))[i];
#define RAW(p, w) raw[(p) * (RUN_WORDS / 4) + (w) / 4]
#define DECODED(p)                                                                                  \
    {                                                                                               \
        const uint4 four_ = RAW(p, w);                                                              \
        const uint word_ = w % 4 == 0 ? four_.x : w % 4 == 1 ? four_.y : w % 4 == 2 ? four_.z : four_.w; \
        WORD_OF(p, w, word_, lane, KEEP)                                                            \
    }
#else
#define LOAD_RUN(p)
#define DECODED(p) WORD(p, w, lane, KEEP)
#endif
#define DECODE_WORD(p)                                                                              \
    {                                                                                               \
        const int of_panel = (p) * WORD_LEN;                                                        \
        DECODED(p)                                                                                  \
    }
#define MULTIPLY_REST(j, w)                                                                         \
    {                                                                                               \
        const float w_value = w;                                                                    \
        UNROLL for (int r_ = 0; r_ < ROWS; r_++)                                                    \
        {                                                                                           \
            float input = x[from[r_] + at + (j)];                                                   \
            if (!IN_PERSISTENT && has_norm)                                                         \
                input = input * scale[r_] * gain[at + (j)];                                         \
            acc[of_panel + r_] = fma(w_value, input, acc[of_panel + r_]);                           \
        }                                                                                           \
    }
#define MULTIPLY_RESTS(p)                                                                           \
    {                                                                                               \
        const int of_panel = (p) * ROWS;                                                            \
        REST(p, count, lane, MULTIPLY_REST)                                                         \
    }
// Multiplies the inputs of a word with those of all panels.
#define MULTIPLY_WORDS(r)                                                                           \
    {                                                                                               \
        global const float4 *from_row = (global const float4 *)(x + from[r] + at + w * WORD_LEN);   \
        float4 inputs[WORD_LEN / 4];                                                                \
        UNROLL for (int i = 0; i < WORD_LEN / 4; i++)                                               \
            inputs[i] = from_row[i];                                                                \
        if (!IN_PERSISTENT && has_norm) {                                                           \
            global const float4 *gains = (global const float4 *)(gain + at + w * WORD_LEN);         \
            UNROLL for (int i = 0; i < WORD_LEN / 4; i++)                                           \
                inputs[i] = inputs[i] * scale[r] * gains[i];                                        \
        }                                                                                           \
        UNROLL for (int p = 0; p < PANELS; p++)                                                     \
        {                                                                                           \
            float sum = acc[p * ROWS + (r)];                                                        \
            UNROLL for (int i = 0; i < WORD_LEN / 4; i++)                                           \
            {                                                                                       \
                sum = fma(words[p * WORD_LEN + 4 * i], inputs[i].x, sum);                           \
                sum = fma(words[p * WORD_LEN + 4 * i + 1], inputs[i].y, sum);                       \
                sum = fma(words[p * WORD_LEN + 4 * i + 2], inputs[i].z, sum);                       \
                sum = fma(words[p * WORD_LEN + 4 * i + 3], inputs[i].w, sum);                       \
            }                                                                                       \
            acc[p * ROWS + (r)] = sum;                                                              \
        }                                                                                           \
    }

kernel GROUP_OF(PANEL, SLICES) void NAME(PLACE MATMUL_PARAMETERS)
{
    MATMUL_ARGUMENTS(get_group_id(1), ROWS)
    LOCAL(float, sums, SHARED_LEN)
#if PANELS > 1
    LOCAL(float, totals, SUMS * PANEL)
#endif
    const int lane = get_local_id(0);
    const int slice = get_local_id(1);
    const int index = get_group_id(0) * (gate ? GATES : PANELS);
    const size_t panel_len = (size_t)(a.cols / BLOCK) * RECORD;
    const int first_panel = a.first / PANEL + index;
    const int last_panel = (a.first + a.channels - 1) / PANEL;
    size_t from[ROWS];
    float scale[ROWS];
    float acc[SUMS];
    UNROLL for (int i = 0; i < SUMS; i++)
        acc[i] = 0.0f;
#if IN_PERSISTENT
    // The op before this one normed the rows, and `gain` is where they are.
    if (has_norm) {
        x = gain + NORMED_AT(a.rows, a.cols);
        x_stride = NORMED_LEN(a.cols);
    }
#endif
    UNROLL for (int r = 0; r < ROWS; r++)
        from[r] = (size_t)X_ROW(min(row + r, a.rows - 1)) * x_stride;
#if !IN_PERSISTENT
    local float scales[ROWS];
    if (has_norm) {
        const int item = slice * PANEL + lane;
        const int count = min(ROWS, a.rows - row);
        norm_scales(x + from[0], x_stride, count, a.cols, eps, item, sums, scales);
    }
    UNROLL for (int r = 0; r < ROWS; r++)
        scale[r] = has_norm ? scales[min(row + r, a.rows - 1) - row] : 1.0f;
#endif
    const int end = min((slice + 1) * SEGMENT, a.cols);
    for (int at = slice * SEGMENT; at < end; at += RUN_LEN) {
        const int count = min(RUN_LEN, end - at);
        EACH_PANEL(BEGIN)
#if BLOCK > 1
        uint4 raw[PANELS * RUN_WORDS / 4];
#endif
        EACH_PANEL(LOAD_RUN)
        UNROLL for (int w = 0; w < RUN_LEN / WORD_LEN; w++)
        {
            if (w < WHOLE(count) / WORD_LEN) {
                float words[PANELS * WORD_LEN];
                EACH_PANEL(DECODE_WORD)
                UNROLL for (int r = 0; r < ROWS; r++)
                    MULTIPLY_WORDS(r)
            }
        }
        EACH_PANEL(MULTIPLY_RESTS)
    }
    const int segments = (a.cols + SEGMENT - 1) / SEGMENT;
    UNROLL for (int first = 0; first < SUMS; first += PART)
    {
        if (first > 0)
            barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL for (int i = 0; i < PART; i++)
            sums[(slice * PART + i) * PANEL + lane] = acc[first + i];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (slice < PART) {
            float total = 0.0f;
            _Pragma("unroll 16") for (int s = 0; s < segments; s++)
                total += sums[(s * PART + slice) * PANEL + lane];
            const int sum = first + slice;
#if PANELS == 1
            put_one(&a, row + sum, index * PANEL + lane, total, bias, residual, out);
#else
            totals[sum * PANEL + lane] = total;
#endif
        }
    }
#if PANELS > 1
    barrier(CLK_LOCAL_MEM_FENCE);
    if (slice < (gate ? GATES * ROWS : SUMS)) {
        const float up = totals[(gate ? GATES * ROWS + slice : slice) * PANEL + lane];
        const float sum = gate ? ACTIVATED(gate, totals[slice * PANEL + lane]) * up : up;
        const int channel = (index + slice / ROWS) * PANEL + lane;
        put_one(&a, row + slice % ROWS, channel, sum, bias, residual, out);
    }
#endif
}

#undef SUMS
#undef PART
#undef GATES
#undef SUMS_LEN
#undef SHARED_LEN
#undef PANEL_AT
#undef BEGIN
#undef KEEP
#undef LOAD_RUN
#undef RAW
#undef DECODED
#undef DECODE_WORD
#undef MULTIPLY_WORDS
#undef MULTIPLY_REST
#undef MULTIPLY_RESTS
