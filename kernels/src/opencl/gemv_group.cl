// Matmul for few rows, whose segments are shared by the items of a work-group, for GPUs. The text is
// compiled for each number of rows and panels, with NAME, ROWS, PANELS and SLICES, which is at least the
// number of segments: of a group's PANEL × SLICES items, each sums one segment of one channel of each panel.
//
// The rows of x begin at multiples of 4 values.

// Sums of an item; those of panel p begin at p * ROWS.
#define SUMS (ROWS * PANELS)
// Sums of each item that are in local memory at a time.
#define PART (SUMS < 4 ? SUMS : 4)

#define BEGIN(p)                                                                                    \
    START(p, weight + (size_t)min(first_panel + (p), last_panel) * panel_len, lane, at / RUN_LEN)
#define KEEP(j, w) word[(j) % WORD_LEN] = w;
#define MULTIPLY_WORD(p)                                                                            \
    {                                                                                               \
        float word[WORD_LEN];                                                                       \
        WORD(p, w, lane, KEEP)                                                                      \
        UNROLL for (int r = 0; r < ROWS; r++)                                                       \
        {                                                                                           \
            global const float4 *inputs = (global const float4 *)(x + from[r] + at + w * WORD_LEN); \
            float sum = acc[(p) * ROWS + r];                                                        \
            UNROLL for (int i = 0; i < WORD_LEN / 4; i++)                                           \
            {                                                                                       \
                const float4 four = inputs[i];                                                      \
                sum = fma(word[4 * i], four.x, sum);                                                \
                sum = fma(word[4 * i + 1], four.y, sum);                                            \
                sum = fma(word[4 * i + 2], four.z, sum);                                            \
                sum = fma(word[4 * i + 3], four.w, sum);                                            \
            }                                                                                       \
            acc[(p) * ROWS + r] = sum;                                                              \
        }                                                                                           \
    }
#define MULTIPLY_REST(j, w)                                                                         \
    {                                                                                               \
        const float w_value = w;                                                                    \
        UNROLL for (int r_ = 0; r_ < ROWS; r_++)                                                    \
            acc[of_panel + r_] = fma(w_value, x[from[r_] + at + (j)], acc[of_panel + r_]);          \
    }
#define MULTIPLY_RESTS(p)                                                                           \
    {                                                                                               \
        const int of_panel = (p) * ROWS;                                                            \
        REST(p, count, lane, MULTIPLY_REST)                                                         \
    }

kernel GROUP_OF(PANEL, SLICES) void NAME(PLACE MATMUL_PARAMETERS)
{
    MATMUL_ARGUMENTS
    LOCAL(float, sums, SLICES * PART * PANEL)
    const int lane = get_local_id(0);
    const int slice = get_local_id(1);
    const int index = get_group_id(0) * PANELS;
    const int row = get_group_id(1) * ROWS;
    const size_t panel_len = (size_t)(a.cols / BLOCK) * RECORD;
    const int first_panel = a.first / PANEL + index;
    const int last_panel = (a.first + a.channels - 1) / PANEL;
    size_t from[ROWS];
    float acc[SUMS];
    UNROLL for (int r = 0; r < ROWS; r++)
        from[r] = (size_t)min(row + r, a.rows - 1) * a.x_stride;
    UNROLL for (int i = 0; i < SUMS; i++)
        acc[i] = 0.0f;
    const int end = min((slice + 1) * SEGMENT, a.cols);
    for (int at = slice * SEGMENT; at < end; at += RUN_LEN) {
        const int count = min(RUN_LEN, end - at);
        EACH_PANEL(BEGIN)
        UNROLL for (int w = 0; w < RUN_LEN / WORD_LEN; w++)
        {
            if (w < WHOLE(count) / WORD_LEN) {
                EACH_PANEL(MULTIPLY_WORD)
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
            put_one(&a, row + sum % ROWS, (index + sum / ROWS) * PANEL + lane, total, bias, residual, out);
        }
    }
}

#undef SUMS
#undef PART
#undef BEGIN
#undef KEEP
#undef MULTIPLY_WORD
#undef MULTIPLY_REST
#undef MULTIPLY_RESTS
