// What every program begins with. A vector has LANES lanes: output channels of a panel.
//
// GROUP_OF(x, y): the kernel runs in work-groups of that size only. UNROLL: the loop that follows is
// unrolled, so that its arrays are registers. REDUCE(COMBINE): the items of a group of ITEMS, a power of
// two, combine what they hold in local memory; COMBINE(to, from) adds that of one item to another's.

#pragma OPENCL FP_CONTRACT OFF

#define PANEL 16

// In persistent.cl the text of a kernel is a function, for which these have another meaning. PLACE: the
// parameters before its own. LOCAL(type, name, len): an array in local memory. IDLE: the group repeats
// what another one computes, and writes nothing. ROUNDS(n): the most of the groups' numbers that are
// computed side by side, and so have the same barriers.
#ifndef PLACE
#define PLACE
#define LOCAL(type, name, len) local type name[len];
#define IDLE false
#define ROUNDS(n) (n)
#define GROUP_OF(x, y) __attribute__((reqd_work_group_size(x, y, 1)))
#endif

#define UNROLL _Pragma("unroll")
#define REDUCE(COMBINE)                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                   \
    for (int other = ITEMS / 2; other > 0; other /= 2) {                                            \
        if (item < other)                                                                           \
            COMBINE(item, item + other)                                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    }
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
