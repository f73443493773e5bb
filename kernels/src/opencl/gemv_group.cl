// Matmul for few rows, whose segments are shared by the items of a work-group, for GPUs. The text is
// compiled once for each number of rows, with NAME, ROWS and SLICES. A group has PANEL × slices items, and
// at most SLICES slices: an item sums segments of one channel, and a row's sums are added up in order.
//
// The rows of x begin at multiples of 4 values, if WIDE is 1.

// Reads the inputs of a word.
#define READ_WORD(w)                                                                                \
    _Pragma("unroll") for (int r_ = 0; r_ < ROWS; r_++)                                             \
    {                                                                                               \
        _Pragma("unroll") for (int i_ = 0; i_ < WORD_LEN / 4; i_++)                                 \
        {                                                                                           \
            const float4 four_ = *(global const float4 *)(from[r_] + (w) * WORD_LEN + 4 * i_);      \
            inputs[r_][4 * i_] = four_.x;                                                           \
            inputs[r_][4 * i_ + 1] = four_.y;                                                       \
            inputs[r_][4 * i_ + 2] = four_.z;                                                       \
            inputs[r_][4 * i_ + 3] = four_.w;                                                       \
        }                                                                                           \
    }

// Multiplies a value of a word with the inputs that were read, or with those in memory.
#define MULTIPLY(j, w)                                                                              \
    {                                                                                               \
        const float w_value = w;                                                                    \
        _Pragma("unroll") for (int r_ = 0; r_ < ROWS; r_++)                                         \
            acc[r_] = fma(w_value, inputs[r_][(j) % WORD_LEN], acc[r_]);                            \
    }
#define MULTIPLY_REST(j, w)                                                                         \
    {                                                                                               \
        const float w_value = w;                                                                    \
        for (int r_ = 0; r_ < ROWS; r_++)                                                           \
            acc[r_] = fma(w_value, from[r_][j], acc[r_]);                                           \
    }

kernel void NAME(MATMUL_PARAMETERS)
{
    MATMUL_ARGUMENTS
    local float sums[SLICES * ROWS * PANEL];
    local float totals[ROWS * PANEL];
    const int lane = get_local_id(0);
    const int slice = get_local_id(1);
    const int slices = get_local_size(1);
    const int index = get_group_id(0);
    const int row = get_group_id(1) * ROWS;
    global const uint *panel =
        weight + (size_t)(a.first / PANEL + index) * (a.cols / BLOCK) * RECORD;
    for (int r = slice; r < ROWS; r += slices)
        totals[r * PANEL + lane] = 0.0f;
    const int segments = (a.cols + SEGMENT - 1) / SEGMENT;
    for (int first = 0; first < segments; first += slices) {
        float acc[ROWS];
        for (int r = 0; r < ROWS; r++)
            acc[r] = 0.0f;
        const int start = (first + slice) * SEGMENT;
        const int end = min(start + SEGMENT, a.cols);
        for (int at = start; at < end; at += RUN_LEN) {
            global const float *from[ROWS];
            float inputs[ROWS][WORD_LEN];
            for (int r = 0; r < ROWS; r++)
                from[r] = x + (size_t)min(row + r, a.rows - 1) * a.x_stride + at;
            const int count = min(RUN_LEN, end - at);
            START(0, panel, lane, at / RUN_LEN)
            _Pragma("unroll") for (int w = 0; w < RUN_LEN / WORD_LEN; w++)
            {
                if (w < WHOLE(count) / WORD_LEN) {
                    READ_WORD(w)
                    WORD(0, w, lane, MULTIPLY)
                }
            }
            REST(0, count, lane, MULTIPLY_REST)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = 0; r < ROWS; r++)
            sums[(slice * ROWS + r) * PANEL + lane] = acc[r];
        barrier(CLK_LOCAL_MEM_FENCE);
        const int here = min(slices, segments - first);
        for (int r = slice; r < ROWS; r += slices) {
            float total = totals[r * PANEL + lane];
            _Pragma("unroll 8") for (int s = 0; s < here; s++)
                total += sums[(s * ROWS + r) * PANEL + lane];
            totals[r * PANEL + lane] = total;
        }
    }
    for (int r = slice; r < ROWS; r += slices)
        put_one(&a, row + r, index * PANEL + lane, totals[r * PANEL + lane], bias, residual, out);
}

#undef READ_WORD
#undef MULTIPLY
#undef MULTIPLY_REST
