// Matmul for few rows, whose segments are shared by the items of a work-group, for GPUs. The text is
// compiled for each number of rows, with NAME, ROWS and SLICES, which is at least the number of segments:
// of a group's PANEL × SLICES items, each sums one segment of one channel.
//
// The rows of x begin at multiples of 4 values.

// Rows whose sums are in local memory at a time.
#define PART (ROWS < 4 ? ROWS : 4)

#define KEEP(j, w) word[(j) % WORD_LEN] = w;
#define MULTIPLY_REST(j, w)                                                                         \
    {                                                                                               \
        const float w_value = w;                                                                    \
        for (int r_ = 0; r_ < ROWS; r_++)                                                           \
            acc[r_] = fma(w_value, x[from[r_] + at + (j)], acc[r_]);                                \
    }

kernel GROUP_OF(PANEL, SLICES) void NAME(MATMUL_PARAMETERS)
{
    MATMUL_ARGUMENTS
    local float sums[SLICES * PART * PANEL];
    const int lane = get_local_id(0);
    const int slice = get_local_id(1);
    const int index = get_group_id(0);
    const int row = get_group_id(1) * ROWS;
    global const uint *panel =
        weight + (size_t)(a.first / PANEL + index) * (a.cols / BLOCK) * RECORD;
    size_t from[ROWS];
    float acc[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        from[r] = (size_t)min(row + r, a.rows - 1) * a.x_stride;
        acc[r] = 0.0f;
    }
    const int end = min((slice + 1) * SEGMENT, a.cols);
    for (int at = slice * SEGMENT; at < end; at += RUN_LEN) {
        const int count = min(RUN_LEN, end - at);
        START(0, panel, lane, at / RUN_LEN)
        UNROLL for (int w = 0; w < RUN_LEN / WORD_LEN; w++)
        {
            if (w < WHOLE(count) / WORD_LEN) {
                float word[WORD_LEN];
                WORD(0, w, lane, KEEP)
                UNROLL for (int r = 0; r < ROWS; r++)
                {
                    global const float4 *inputs =
                        (global const float4 *)(x + from[r] + at + w * WORD_LEN);
                    UNROLL for (int i = 0; i < WORD_LEN / 4; i++)
                    {
                        const float4 four = inputs[i];
                        acc[r] = fma(word[4 * i], four.x, acc[r]);
                        acc[r] = fma(word[4 * i + 1], four.y, acc[r]);
                        acc[r] = fma(word[4 * i + 2], four.z, acc[r]);
                        acc[r] = fma(word[4 * i + 3], four.w, acc[r]);
                    }
                }
            }
        }
        REST(0, count, lane, MULTIPLY_REST)
    }
    const int segments = (a.cols + SEGMENT - 1) / SEGMENT;
    UNROLL for (int first = 0; first < ROWS; first += PART)
    {
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL for (int r = 0; r < PART; r++)
            sums[(slice * PART + r) * PANEL + lane] = acc[first + r];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (slice < PART) {
            float total = 0.0f;
            _Pragma("unroll 8") for (int s = 0; s < segments; s++)
                total += sums[(s * PART + slice) * PANEL + lane];
            put_one(&a, row + first + slice, index * PANEL + lane, total, bias, residual, out);
        }
    }
}

#undef PART
#undef KEEP
#undef MULTIPLY_REST
