// What programs of ops with a state begin with: where rows and states are. An operand is a buffer, the place of its first
// value, and the distance of its rows.

#define PARAMETERS(name) global const float *name, int name##_at, int name##_stride
#define OUT_PARAMETERS global float *out, int out_at, int out_stride
#define ROW(name) (name + name##_at + (size_t)row * name##_stride)

// A span has these numbers: its first row, its rows, the position of the first one, the place of the state before it or -1, the
// place of that after it, the first of the pairs of numbers that say where else states are kept, and how many pairs there are. A
// pair is the rows of the span before the state, and the place. Numbers out of range are replaced, so that no access leaves a buffer.
#define SPAN_INTS 7
#define SPAN_PARAMETERS global const int *ints, int spans_at, int spans, int ints_len, int places, int rows
#define NUMBER(at) ints[clamp(at, 0, ints_len - 1)]
#define OF_SPAN(i) NUMBER(spans_at + span * SPAN_INTS + (i))
#define FIRST_ROW clamp(OF_SPAN(0), 0, rows - 1)
#define ROWS_OF_SPAN clamp(OF_SPAN(1), 0, rows - FIRST_ROW)
#define START max(OF_SPAN(2), 0)
#define FROM min(OF_SPAN(3), places - 1)
#define TO clamp(OF_SPAN(4), 0, places - 1)
#define KEEPS max(OF_SPAN(6), 0)
#define KEPT_AFTER(i) NUMBER(OF_SPAN(5) + 2 * (i))
#define KEPT_AT(i) clamp(NUMBER(OF_SPAN(5) + 2 * (i) + 1), 0, places - 1)
