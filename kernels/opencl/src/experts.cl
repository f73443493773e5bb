// Which experts rows have, and what becomes of their values.

// An item chooses the experts of a row by its logits: writes the numbers of `used` of them, the best first, then their
// weights. Experts are in `groups` groups if that is not 0, of which `kept` are used. `scores` has room for a value of
// each expert and group of each row.
kernel void choose_experts(PLACE PARAMETERS(x), global const float *bias, global float *scores, OUT_PARAMETERS,
                           int rows, int experts, int used, int kind, int has_bias, int groups, int kept,
                           int is_normalised, float least, float factor)
{
    const int row = get_global_id(1);
    if (get_global_id(0) > 0 || row >= rows)
        return;
    global const float *logits = ROW(x);
    global float *known = scores + (size_t)row * (experts + groups);
    global float *to = ROW(out);
    float largest = -INFINITY;
    for (int i = 0; i < experts; i++)
        largest = fmax(largest, logits[i]);
    float sum = 0.0f;
    for (int i = 0; i < experts && kind == SOFTMAX; i++)
        sum += exp(logits[i] - largest);
    // Scores rise with the logits.
    const bool by_score = has_bias || groups > 0;
    for (int i = 0; i < experts; i++) {
        const float score = by_score ? router_score(kind, logits[i], largest, sum) : logits[i];
        known[i] = has_bias ? score + bias[i] : score;
    }
    const int size = groups > 0 ? experts / groups : experts;
    for (int group = 0; group < groups; group++)
        known[experts + group] = two_best(known + group * size, size);
    for (int i = 0; i < experts && groups > 0; i++) {
        if (!is_kept(known + experts, i / size, groups, kept))
            known[i] = -INFINITY;
    }
    int key = INT_MAX;
    int last = -1;
    for (int rank = 0; rank < used; rank++) {
        int best = INT_MIN;
        int at = INT_MAX;
        for (int i = 0; i < experts; i++) {
            const int own = score_key(known[i]);
            const bool is_left = own < key || (own == key && i > last);
            if (is_left && (own > best || at == INT_MAX)) {
                best = own;
                at = i;
            }
        }
        key = best;
        last = at;
        to[rank] = (float)last;
    }
    weigh_experts(logits, to, used, kind, largest, sum, is_normalised, least, factor);
}

// Sorts those slots of rows, `used` of each, by their experts that have one of `experts` experts from `from` on, of `all`.
// Item e writes which place the first slot of expert from + e has, and its slots in ascending order; the last item only the
// number of slots. `table`: the first places, then the slots.
kernel void sort_experts(PLACE PARAMETERS(route), global int *table, int rows, int experts, int used, int all, int from)
{
    const int own = get_global_id(0);
    if (own > experts)
        return;
    int first = 0;
    for (int row = 0; row < rows; row++) {
        global const float *numbers = ROW(route);
        for (int slot = 0; slot < used; slot++) {
            const int expert = expert_of(numbers[slot], all) - from;
            first += expert >= 0 && expert < own ? 1 : 0;
        }
    }
    table[own] = first;
    global int *to = table + experts + 1 + first;
    for (int row = 0; row < rows && own < experts; row++) {
        global const float *numbers = ROW(route);
        for (int slot = 0; slot < used; slot++) {
            if (expert_of(numbers[slot], all) - from == own)
                *to++ = row * used + slot;
        }
    }
}

// The row of a slot, and its weight.
#define OF_SLOT(name) (name + name##_at + (size_t)(row / used) * name##_stride)
#define SLOT_WEIGHT OF_SLOT(route)[used + row % used]

// What an expert reads of a row, times the weight of the slot: `used` rows of `out` for each row of x.
kernel void weigh_rows(PLACE PARAMETERS(x), PARAMETERS(route), OUT_PARAMETERS, int rows, int width, int used)
{
    EACH_VALUE(vstore16(SLOT_WEIGHT * vload16(0, OF_SLOT(x) + i), 0, ROW(out) + i);,
               ROW(out)[i] = SLOT_WEIGHT * OF_SLOT(x)[i];)
}

#define MIX_WEIGHT(slot) (is_weighted ? ROW(route)[used + (slot)] : 1.0f)
#define MADE(slot) (ROW(x) + (size_t)(slot) * width)

// The sum of what `used` experts have made of a row, in their order, each times its weight if `is_weighted`.
kernel void mix_experts(PLACE PARAMETERS(x), PARAMETERS(route), OUT_PARAMETERS, int rows, int width, int used,
                        int is_weighted)
{
    EACH_VALUE(
        {
            float16 sum = MIX_WEIGHT(0) * vload16(0, MADE(0) + i);
            for (int slot = 1; slot < used; slot++)
                sum = fma((float16)(MIX_WEIGHT(slot)), vload16(0, MADE(slot) + i), sum);
            vstore16(sum, 0, ROW(out) + i);
        },
        {
            float sum = MIX_WEIGHT(0) * MADE(0)[i];
            for (int slot = 1; slot < used; slot++)
                sum = fma(MIX_WEIGHT(slot), MADE(slot)[i], sum);
            ROW(out)[i] = sum;
        })
}
