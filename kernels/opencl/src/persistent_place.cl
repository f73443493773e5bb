// Begins the text of a persistent kernel (persistent.cl): in what follows, kernels are functions, which
// learn from `place` what the item and its group compute.

typedef struct {
    int group[2];
    int item[2];
    int at[3];
    int size[3];
    bool is_idle;
    // Which of the groups that are computed side by side, and how many there are.
    int slot;
    int slots;
    local int *rounds;
} Place;

inline int own_item(void)
{
    return get_local_id(0);
}

inline int own_group(void)
{
    return get_group_id(0);
}

// The largest of the numbers of the groups that are computed side by side.
inline int most(Place place, int number)
{
    if (place.slots == 1)
        return number;
    if (place.item[0] == 0)
        place.rounds[place.slot] = number;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int slot = 0; slot < place.slots; slot++)
        number = max(number, place.rounds[slot]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return number;
}

#define IN_PERSISTENT 1
// Rows of values that each group has normed for itself: they begin at multiples of 4 values, as the host
// counts (`normed` in persistent.rs).
#define NORMED_LEN(cols) (((cols) + 3) / 4 * 4)
#define NORMED_AT(rows, cols) ((size_t)own_group() * (rows)*NORMED_LEN(cols))
#define PLACE const Place place, local uint *memory,
#define LOCAL(type, name, len)                                                                      \
    local type *name = (local type *)memory;                                                        \
    memory += (len);
#define IDLE place.is_idle
#define ROUNDS(n) most(place, n)
#define GROUP_OF(x, y)
#define kernel inline
#define get_local_id(d) place.item[d]
#define get_group_id(d) place.group[d]
#define get_global_id(d) place.at[d]
#define get_global_size(d) place.size[d]
