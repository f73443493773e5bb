// Matmuls whose output panels are shared by the items of a work-group, for GPUs. Compiled with one
// lane. Each sum has the order of matmul.cl, so the results have the same bits.

// Output channels of a group of `matmul_group`; an item computes ITEM_CHANNELS of ITEM_ROWS rows.
#define ITEM_CHANNELS 4
#define ITEM_ROWS 8
#define TILE_CHANNELS (ITEM_CHANNELS * PANEL)
// Rows begin at multiples of 4 values, in different banks of local memory.
#define TILE_STRIDE (GROUP_ROWS + 4)
#define GROUP_ITEMS (PANEL * GROUP_ROWS / ITEM_ROWS)
#define OUTPUTS (ITEM_CHANNELS * ITEM_ROWS)
// What an item brings into local memory for a run: words of one channel, and values of every VALUE_STEP-th row. The
// loops over them have constant bounds, so that all loads of an item are on their way at the same time.
#define ITEM_WORDS (TILE_CHANNELS * (RUN_LEN / WORD_LEN) / GROUP_ITEMS)
#define ITEM_VALUES (GROUP_ROWS * RUN_LEN / GROUP_ITEMS)
#define VALUE_STEP (GROUP_ITEMS / RUN_LEN)

#if EXPERTS
#define VALUE(k)                                                                                    \
    x[(size_t)x_rows[value_row + (k) * VALUE_STEP] * a.x_stride + value_at + run * RUN_LEN]
#else
#define VALUE(k) values_from[(k) * VALUE_STEP * a.x_stride + run * RUN_LEN]
#endif
#define STORE(j, w) weights[(j) * TILE_CHANNELS + column] = w;
#define MULTIPLY(r, value)                                                                          \
    acc[4 * (r)] = fma(w.x, value, acc[4 * (r)]);                                                   \
    acc[4 * (r) + 1] = fma(w.y, value, acc[4 * (r) + 1]);                                           \
    acc[4 * (r) + 2] = fma(w.z, value, acc[4 * (r) + 2]);                                           \
    acc[4 * (r) + 3] = fma(w.w, value, acc[4 * (r) + 3]);

// Many rows: for each run of inputs, the group decodes the weights of four panels and copies the
// activations of GROUP_ROWS rows into local memory. The group has PANEL × (GROUP_ROWS / ITEM_ROWS) items.
kernel GROUP_OF(PANEL, GROUP_ROWS / ITEM_ROWS) void matmul_group(MATMUL_PARAMETERS)
{
    MATMUL_ARGUMENTS(get_group_id(1), GROUP_ROWS)
    local float weights[RUN_LEN * TILE_CHANNELS] __attribute__((aligned(16)));
    local float values[RUN_LEN * TILE_STRIDE] __attribute__((aligned(16)));
    const int lane = get_local_id(0);
    const int first_row = get_local_id(1) * ITEM_ROWS;
    const int item = get_local_id(1) * PANEL + lane;
    const int channel = get_group_id(0) * TILE_CHANNELS;
    const size_t panel_len = (size_t)(a.cols / BLOCK) * RECORD;
    const int first_panel = (a.first + channel) / PANEL;
    const int last_panel = (a.first + a.channels - 1) / PANEL;
    const int column = item % TILE_CHANNELS;
    const int first_word = item / TILE_CHANNELS * ITEM_WORDS;
    const size_t panel = min(first_panel + column / PANEL, last_panel);
    // Items that are neighbours read 8 values of 4 rows, and write to different banks.
    const int value_at = item % 8 + item / 32 % (RUN_LEN / 8) * 8;
    const int value_row = item / 8 % 4 + item / (4 * RUN_LEN) * 4;
#if EXPERTS
    local int x_rows[GROUP_ROWS];
    for (int r = item; r < GROUP_ROWS; r += GROUP_ITEMS)
        x_rows[r] = row + r < a.rows ? X_ROW(row + r) : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    global const float *values_from = x + (size_t)(row + value_row) * a.x_stride + value_at;
#endif
    float acc[OUTPUTS];
    float total[OUTPUTS];
    UNROLL for (int i = 0; i < OUTPUTS; i++)
    {
        acc[i] = 0.0f;
        total[i] = 0.0f;
    }
    const int runs = (a.cols + RUN_LEN - 1) / RUN_LEN;
    for (int run = 0; run < runs; run++) {
        const int count = min(RUN_LEN, a.cols - run * RUN_LEN);
        float copied[ITEM_VALUES];
        UNROLL for (int k = 0; k < ITEM_VALUES; k++)
        {
            const bool is_there = value_at < count && row + value_row + k * VALUE_STEP < a.rows;
            copied[k] = is_there ? VALUE(k) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        {
            START(0, weight + panel * panel_len, column % PANEL, run)
            UNROLL for (int k = 0; k < ITEM_WORDS; k++)
            {
                if (first_word + k < WHOLE(count) / WORD_LEN)
                    WORD(0, first_word + k, column % PANEL, STORE)
            }
            if (first_word == 0) {
                REST(0, count, column % PANEL, STORE)
            }
        }
        UNROLL for (int k = 0; k < ITEM_VALUES; k++)
            values[value_at * TILE_STRIDE + value_row + k * VALUE_STEP] = copied[k];
        barrier(CLK_LOCAL_MEM_FENCE);
        _Pragma("unroll 4") for (int at = 0; at < count; at++)
        {
            const float4 w = *(local const float4 *)(weights + at * TILE_CHANNELS + 4 * lane);
            local const float4 *these = (local const float4 *)(values + at * TILE_STRIDE + first_row);
            const float4 lower = these[0];
            const float4 upper = these[1];
            MULTIPLY(0, lower.x)
            MULTIPLY(1, lower.y)
            MULTIPLY(2, lower.z)
            MULTIPLY(3, lower.w)
            MULTIPLY(4, upper.x)
            MULTIPLY(5, upper.y)
            MULTIPLY(6, upper.z)
            MULTIPLY(7, upper.w)
        }
        if ((run + 1) % (SEGMENT / RUN_LEN) == 0 || run + 1 == runs) {
            UNROLL for (int i = 0; i < OUTPUTS; i++)
            {
                total[i] += acc[i];
                acc[i] = 0.0f;
            }
        }
    }
    UNROLL for (int i = 0; i < OUTPUTS; i++)
    {
        const int to = row + first_row + i / ITEM_CHANNELS;
        put_one(&a, to, channel + ITEM_CHANNELS * lane + i % ITEM_CHANNELS, total[i], bias, residual, out);
    }
}

#undef VALUE
#undef STORE
#undef MULTIPLY
