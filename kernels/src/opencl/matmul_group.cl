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
    MATMUL_ARGUMENTS
    local float weights[RUN_LEN * TILE_CHANNELS] __attribute__((aligned(16)));
    local float values[RUN_LEN * TILE_STRIDE] __attribute__((aligned(16)));
    const int lane = get_local_id(0);
    const int first_row = get_local_id(1) * ITEM_ROWS;
    const int item = get_local_id(1) * PANEL + lane;
    const int channel = get_group_id(0) * TILE_CHANNELS;
    const int row = get_group_id(1) * GROUP_ROWS;
    const size_t panel_len = (size_t)(a.cols / BLOCK) * RECORD;
    const int first_panel = (a.first + channel) / PANEL;
    const int last_panel = (a.first + a.channels - 1) / PANEL;
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
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = item; i < TILE_CHANNELS * (RUN_LEN / WORD_LEN); i += GROUP_ITEMS) {
            const int column = i % TILE_CHANNELS;
            const int word = i / TILE_CHANNELS;
            const size_t panel = min(first_panel + column / PANEL, last_panel);
            if (word < WHOLE(count) / WORD_LEN) {
                START(0, weight + panel * panel_len, column % PANEL, run)
                WORD(0, word, column % PANEL, STORE)
            }
        }
#if BLOCK == 1
        for (int column = item; column < TILE_CHANNELS; column += GROUP_ITEMS) {
            const size_t panel = min(first_panel + column / PANEL, last_panel);
            START(0, weight + panel * panel_len, column % PANEL, run)
            REST(0, count, column % PANEL, STORE)
        }
#endif
        // Items that are neighbours read 8 values of 4 rows, and write to different banks.
        for (int i = item; i < GROUP_ROWS * RUN_LEN; i += GROUP_ITEMS) {
            const int at = i % 8 + i / 32 % (RUN_LEN / 8) * 8;
            const int to = i / 8 % 4 + i / (4 * RUN_LEN) * 4;
            const int from = min(row + to, a.rows - 1);
            if (at < count)
                values[at * TILE_STRIDE + to] = x[(size_t)from * a.x_stride + run * RUN_LEN + at];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int at = 0; at < count; at++) {
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

#undef STORE
#undef MULTIPLY
