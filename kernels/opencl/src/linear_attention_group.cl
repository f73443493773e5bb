// Linear attention whose work-groups share a block of columns of a head, for GPUs: follows linear_attention.cl in its text. A
// group has ITEMS items. Each has some lines of one column in registers, through all rows of a span. The order of each sum depends
// neither on the rows nor on the spans.

// Items that have different lines of one column, and the lines of an item.
#define PARTS (ITEMS / BLOCK)
#define LINES ((KEYS + PARTS - 1) / PARTS)
#define LINE(i) (part + (i)*PARTS)
#define HAS_LINE(i) (LINE(i) < KEYS)

// Makes `sum` the sum of what the items of its column have. Calls use the halves of `sums` by turns, so that one barrier is enough.
#define ADD_UP(sum)                                                                                 \
    sums[half_at + item] = sum;                                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                   \
    sum = 0.0f;                                                                                     \
    for (int other = 0; other < PARTS; other++)                                                     \
        sum += sums[half_at + other * BLOCK + column];                                              \
    half_at = ITEMS - half_at;

#define STORE_LINES(place)                                                                          \
    UNROLL for (int i = 0; i < LINES; i++)                                                          \
    {                                                                                               \
        if (HAS_LINE(i) && !IDLE)                                                                   \
            LINES_AT(place)[LINE(i) * BLOCK + column] = lines[i];                                   \
    }

kernel GROUP_OF(ITEMS, 1) void linear_attention_group(PLACE STATE_PARAMETERS)
{
    LOCAL(float, sums, 2 * ITEMS)
    const int item = get_local_id(0);
    const int column = item % BLOCK;
    const int part = item / BLOCK;
    const int head = get_group_id(0) / BLOCKS;
    const int block = get_group_id(0) % BLOCKS;
    const int span = get_group_id(1);
    const int at = VALUE_AT + column;
    const bool has_column = block * BLOCK + column < values;
    const int columns = min(values - block * BLOCK, BLOCK);
    // Where the column's numbers are in `rate` and `skip`, and in `keep` its time: those of another column for one that is none.
    const int number_at = HAS_DECAYS && has_column ? at : RATE_AT;
    const int own_column = min(column, columns - 1);
    const int first = FIRST_ROW;
    const int count = ROWS_OF_SPAN;
    const int from = FROM;
    float lines[LINES];
    UNROLL for (int i = 0; i < LINES; i++)
        lines[i] = from >= 0 && HAS_LINE(i) ? LINES_AT(from)[LINE(i) * BLOCK + column] : 0.0f;
    int half_at = 0;
    int kept = 0;
    // A round beyond the last row changes nothing.
    const int rounds = ROUNDS(max(count, 1));
    for (int done = 0; done < rounds; done++) {
        const bool is_row = done < count;
        const int row = first + max(min(done, count - 1), 0);
        float keys[LINES];
        float queries[LINES];
        float faded[LINES];
        UNROLL for (int i = 0; i < LINES; i++)
        {
            keys[i] = HAS_LINE(i) ? (ROW(k) + KEY_HEAD * KEYS)[LINE(i)] : 0.0f;
            queries[i] = HAS_LINE(i) ? (ROW(q) + KEY_HEAD * KEYS)[LINE(i)] : 0.0f;
            if (HAS_DECAYS)
                faded[i] =
                    HAS_LINE(i) ? lines[i] * exp(ROW(keep)[number_at] * DECAYS(LINE(i), columns)[own_column]) : 0.0f;
            else
                faded[i] = HAS_LINE(i) ? lines[i] * (ROW(keep) + head * FACTORS_OF_HEAD)[LINE(i) * KEEP_STEP] : 0.0f;
        }
        const float value = has_column ? ROW(v)[at] : 0.0f;
        float known = 0.0f;
        if (IS_DELTA) {
            UNROLL for (int i = 0; i < LINES; i++)
                known = fma(faded[i], keys[i], known);
            ADD_UP(known)
        }
        const float added = (value - known) * ROW(rate)[number_at];
        float read = 0.0f;
        UNROLL for (int i = 0; i < LINES; i++)
        {
            faded[i] = fma(keys[i], added, faded[i]);
            read = fma(faded[i], queries[i], read);
            lines[i] = is_row ? faded[i] : lines[i];
        }
        ADD_UP(read)
        read *= scale;
        if (part == 0 && has_column && is_row && !IDLE)
            ROW(out)[at] = HAS_SKIP ? fma(value, skip[number_at], read) : read;
        for (; is_row && kept < KEEPS && KEPT_AFTER(kept) <= done + 1; kept++) {
            STORE_LINES(KEPT_AT(kept))
        }
    }
    STORE_LINES(TO)
}
