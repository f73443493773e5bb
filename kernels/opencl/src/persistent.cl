// A persistent kernel: computes ops one after another, each of which would be a launch of its own. Each
// compute unit runs one group of GROUP_ITEMS items. There is a device-wide barrier after each op, except after
// those that every group computes for itself, for the op after it: IS_FOR_NEXT(number).
//
// The text before this defines the ops' kernels as functions, and CASES: for each number of a kernel, how it
// is called. An op has OP_WORDS words: the kernel's number; how many items or groups it has in each
// dimension; its arguments, from word HEAD on, of which a buffer has two words: its address. The groups that
// are computed side by side share MEMORY words of local memory.

#undef kernel
#undef get_local_id
#undef get_group_id
#undef get_global_id
#undef get_global_size

#define INT(i) as_int(op[HEAD + (i)])
#define FLOAT(i) as_float(op[HEAD + (i)])
#define BUFFER(i) (global void *)(size_t)upsample(op[HEAD + (i) + 1], op[HEAD + (i)])

// Memory that this group wrote is visible to all, and what others wrote to this group. The standard has such
// a fence for one work-group only; without a driver's own, there may be one group.
#ifdef __NV_CL_C_VERSION
#define DEVICE_FENCE asm volatile("fence.acq_rel.gpu;" ::: "memory")
#else
#define DEVICE_FENCE mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

// The items of a kernel without groups, shared by all items of the device.
#define EACH_ITEM(CALL)                                                                             \
    {                                                                                               \
        const uint total = op[1] * op[2] * op[3];                                                   \
        place.size[0] = op[1];                                                                      \
        place.size[1] = op[2];                                                                      \
        place.size[2] = op[3];                                                                      \
        for (uint i = group * GROUP_ITEMS + item; i < total; i += groups * GROUP_ITEMS) {           \
            place.at[0] = i % op[1];                                                                \
            place.at[1] = i / op[1] % op[2];                                                        \
            place.at[2] = i / op[1] / op[2];                                                        \
            CALL;                                                                                   \
        }                                                                                           \
    }

// The groups of a kernel, of `width` × `height` items: as many side by side as there are items for. Groups
// that follow each other alternate between two parts of the memory, so that items may begin with the next one
// while others end the last.
#define EACH_GROUP(width, height, CALL)                                                             \
    {                                                                                               \
        const int size = (width) * (height);                                                        \
        const uint total = op[1] * op[2];                                                           \
        place.slots = GROUP_ITEMS / size;                                                           \
        place.slot = item / size;                                                                   \
        place.item[0] = item % size % (width);                                                      \
        place.item[1] = item % size / (width);                                                      \
        int odd = 0;                                                                                \
        for (uint first = group; first < total; first += groups * place.slots) {                    \
            const uint index = first + place.slot * groups;                                         \
            place.is_idle = index >= total;                                                         \
            place.group[0] = (place.is_idle ? first : index) % op[1];                               \
            place.group[1] = (place.is_idle ? first : index) / op[1];                               \
            memory = all_memory + odd * MEMORY + place.slot * (MEMORY / place.slots);               \
            odd = 1 - odd;                                                                          \
            CALL;                                                                                   \
        }                                                                                           \
    }

// A barrier of all groups: waits until `goal` arrivals since the first launch. Returns false if it reads the
// counter `polls_max` times before that.
inline bool device_barrier(global uint *sync, uint goal, uint polls_max, local int *is_timed_out)
{
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        DEVICE_FENCE;
        atomic_add(sync, 1u);
        uint polls = 0;
        while ((int)(*(volatile global uint *)sync - goal) < 0 && polls < polls_max)
            polls++;
        if (polls == polls_max) {
            sync[1] = 1;
            *is_timed_out = 1;
        }
        DEVICE_FENCE;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return *is_timed_out == 0;
}

// `sync`: arrivals at barriers since the first launch, and whether a barrier timed out.
// `arrived`: the former, before this launch.
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1)))
void persistent(global const uint *ops, int count, global uint *sync, uint arrived, uint polls_max)
{
    local uint all_ops[2][OP_WORDS];
    local uint all_memory[2 * MEMORY];
    local int rounds[GROUP_ITEMS / ROW_ITEMS];
    local int is_timed_out;
    const uint item = own_item();
    const uint group = get_group_id(0);
    const uint groups = get_num_groups(0);
    if (item == 0)
        is_timed_out = 0;
    if (item < OP_WORDS)
        all_ops[0][item] = ops[item];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int at = 0; at < count; at++) {
        local const uint *op = all_ops[at % 2];
        local uint *memory = all_memory;
        Place place;
        place.rounds = rounds;
        place.is_idle = false;
        if (at + 1 < count && item < OP_WORDS)
            all_ops[(at + 1) % 2][item] = ops[(at + 1) * OP_WORDS + item];
        // Items that end such an op may overwrite it while others are at its end.
        const bool is_for_next = IS_FOR_NEXT(op[0]);
        switch (op[0]) {
            CASES
        }
        if (is_for_next)
            continue;
        arrived += groups;
        if (at + 1 < count && !device_barrier(sync, arrived, polls_max, &is_timed_out))
            return;
    }
}

// Writes the address of a buffer.
kernel void address_of(global uchar *buffer, global ulong *to)
{
    *to = (ulong)(size_t)buffer;
}
