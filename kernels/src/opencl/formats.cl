// Decoding of packed weights (see pack.rs). RUN(panel, lane, run, count, EMIT) calls EMIT(j, w) for the
// values j of run `run` of a panel, in ascending order: a run has 32 values, and in formats without
// blocks the last one has `count`. With one lane, `lane` is its channel in the panel.
//
// FORMAT is the number of the format in GGUF files.

#define RUN_LEN 32

#if LANES == 16
typedef float16 VF;
typedef uint16 VU;
HALF_VALUE(half_value, VF, VU, as_float16, as_uint16)
#define LOAD(type, p, lane) vload16(0, (global const type *)(p))
#define TO_UINT(x) convert_uint16(x)
#define NUMBER(x) convert_float16(x)
#define SIGNED(x) as_int16(x)
#define AS_FLOAT(x) as_float16(x)
#else
typedef float VF;
typedef uint VU;
HALF_VALUE(half_value, VF, VU, as_float, as_uint)
#define LOAD(type, p, lane) (((global const type *)(p))[lane])
#define TO_UINT(x) ((uint)(x))
#define NUMBER(x) ((float)(x))
#define SIGNED(x) as_int(x)
#define AS_FLOAT(x) as_float(x)
#endif

#define WORDS(p, lane) LOAD(uint, p, lane)
#define HALVES(p, lane) half_value(TO_UINT(LOAD(ushort, p, lane)))

// Eight values of 4 bits.
#define NIBBLES(q, at, d, m, EMIT)                                                                  \
    EMIT((at) + 0, fma(d, NUMBER(SIGNED((q) & 15u)), m))                                            \
    EMIT((at) + 1, fma(d, NUMBER(SIGNED(((q) >> 4) & 15u)), m))                                     \
    EMIT((at) + 2, fma(d, NUMBER(SIGNED(((q) >> 8) & 15u)), m))                                     \
    EMIT((at) + 3, fma(d, NUMBER(SIGNED(((q) >> 12) & 15u)), m))                                    \
    EMIT((at) + 4, fma(d, NUMBER(SIGNED(((q) >> 16) & 15u)), m))                                    \
    EMIT((at) + 5, fma(d, NUMBER(SIGNED(((q) >> 20) & 15u)), m))                                    \
    EMIT((at) + 6, fma(d, NUMBER(SIGNED(((q) >> 24) & 15u)), m))                                    \
    EMIT((at) + 7, fma(d, NUMBER(SIGNED((q) >> 28)), m))

// Eight values of 5 bits; the fifth ones are the lowest bits of h.
#define FIVE(low, h, j) SIGNED((low) | (((h) >> (j)) & 1u) << 4)
#define FIVES(q, h, at, d, m, EMIT)                                                                 \
    EMIT((at) + 0, fma(d, NUMBER(FIVE((q) & 15u, h, 0)), m))                                        \
    EMIT((at) + 1, fma(d, NUMBER(FIVE(((q) >> 4) & 15u, h, 1)), m))                                 \
    EMIT((at) + 2, fma(d, NUMBER(FIVE(((q) >> 8) & 15u, h, 2)), m))                                 \
    EMIT((at) + 3, fma(d, NUMBER(FIVE(((q) >> 12) & 15u, h, 3)), m))                                \
    EMIT((at) + 4, fma(d, NUMBER(FIVE(((q) >> 16) & 15u, h, 4)), m))                                \
    EMIT((at) + 5, fma(d, NUMBER(FIVE(((q) >> 20) & 15u, h, 5)), m))                                \
    EMIT((at) + 6, fma(d, NUMBER(FIVE(((q) >> 24) & 15u, h, 6)), m))                                \
    EMIT((at) + 7, fma(d, NUMBER(FIVE((q) >> 28, h, 7)), m))

// Eight values of 6 bits; the upper two are the lowest bits of h.
#define SIX(low, h, j) SIGNED((low) | (((h) >> (2 * (j))) & 3u) << 4)
#define SIXES(q, h, at, d, m, EMIT)                                                                 \
    EMIT((at) + 0, fma(d, NUMBER(SIX((q) & 15u, h, 0)), m))                                         \
    EMIT((at) + 1, fma(d, NUMBER(SIX(((q) >> 4) & 15u, h, 1)), m))                                  \
    EMIT((at) + 2, fma(d, NUMBER(SIX(((q) >> 8) & 15u, h, 2)), m))                                  \
    EMIT((at) + 3, fma(d, NUMBER(SIX(((q) >> 12) & 15u, h, 3)), m))                                 \
    EMIT((at) + 4, fma(d, NUMBER(SIX(((q) >> 16) & 15u, h, 4)), m))                                 \
    EMIT((at) + 5, fma(d, NUMBER(SIX(((q) >> 20) & 15u, h, 5)), m))                                 \
    EMIT((at) + 6, fma(d, NUMBER(SIX(((q) >> 24) & 15u, h, 6)), m))                                 \
    EMIT((at) + 7, fma(d, NUMBER(SIX((q) >> 28, h, 7)), m))

#if FORMAT == 0 || FORMAT == 1 || FORMAT == 30

#define BLOCK 1
#if FORMAT == 0
#define RECORD 16
#define VALUES(p, lane) LOAD(float, p, lane)
#elif FORMAT == 1
#define RECORD 8
#define VALUES(p, lane) HALVES(p, lane)
#else
#define RECORD 8
#define VALUES(p, lane) AS_FLOAT(TO_UINT(LOAD(ushort, p, lane)) << 16)
#endif
#define RUN(panel, lane, run, count, EMIT)                                                          \
    {                                                                                               \
        global const uint *p_ = (panel) + (run) * (RUN_LEN * RECORD);                               \
        int j_ = 0;                                                                                 \
        for (; j_ + 4 <= (count); j_ += 4, p_ += 4 * RECORD) {                                      \
            EMIT(j_, VALUES(p_, lane))                                                              \
            EMIT(j_ + 1, VALUES(p_ + RECORD, lane))                                                 \
            EMIT(j_ + 2, VALUES(p_ + 2 * RECORD, lane))                                             \
            EMIT(j_ + 3, VALUES(p_ + 3 * RECORD, lane))                                             \
        }                                                                                           \
        for (; j_ < (count); j_++, p_ += RECORD)                                                    \
            EMIT(j_, VALUES(p_, lane))                                                              \
    }

#elif FORMAT == 2 || FORMAT == 3

#define BLOCK 32
#define RECORD (FORMAT == 2 ? 72 : 80)
#define RUN(panel, lane, run, count, EMIT)                                                          \
    {                                                                                               \
        global const uint *p_ = (panel) + (run) * RECORD;                                           \
        const VF d_ = HALVES(p_ + 64, lane);                                                        \
        const VF m_ = FORMAT == 2 ? d_ * -8.0f : HALVES(p_ + 64 + (FORMAT == 2 ? 0 : 8), lane);     \
        for (int w_ = 0; w_ < 4; w_++) {                                                            \
            const VU q_ = WORDS(p_ + w_ * PANEL, lane);                                             \
            NIBBLES(q_, w_ * 8, d_, m_, EMIT)                                                       \
        }                                                                                           \
    }

#elif FORMAT == 6 || FORMAT == 7

#define BLOCK 32
#define RECORD (FORMAT == 6 ? 88 : 96)
#define RUN(panel, lane, run, count, EMIT)                                                          \
    {                                                                                               \
        global const uint *p_ = (panel) + (run) * RECORD;                                           \
        VU h_ = WORDS(p_ + 64, lane);                                                               \
        const VF d_ = HALVES(p_ + 80, lane);                                                        \
        const VF m_ = FORMAT == 6 ? d_ * -16.0f : HALVES(p_ + 80 + (FORMAT == 6 ? 0 : 8), lane);    \
        for (int w_ = 0; w_ < 4; w_++, h_ >>= 8) {                                                  \
            const VU q_ = WORDS(p_ + w_ * PANEL, lane);                                             \
            FIVES(q_, h_, w_ * 8, d_, m_, EMIT)                                                     \
        }                                                                                           \
    }

#elif FORMAT == 8

#define BLOCK 32
#define RECORD 136
#define RUN(panel, lane, run, count, EMIT)                                                          \
    {                                                                                               \
        global const uint *p_ = (panel) + (run) * RECORD;                                           \
        const VF d_ = HALVES(p_ + 128, lane);                                                       \
        for (int w_ = 0; w_ < 8; w_++) {                                                            \
            const VU q_ = WORDS(p_ + w_ * PANEL, lane);                                             \
            EMIT(w_ * 4 + 0, d_ * NUMBER(SIGNED(q_ << 24) >> 24))                                   \
            EMIT(w_ * 4 + 1, d_ * NUMBER(SIGNED(q_ << 16) >> 24))                                   \
            EMIT(w_ * 4 + 2, d_ * NUMBER(SIGNED(q_ << 8) >> 24))                                    \
            EMIT(w_ * 4 + 3, d_ * NUMBER(SIGNED(q_) >> 24))                                         \
        }                                                                                           \
    }

#elif FORMAT == 12 || FORMAT == 13

#define BLOCK 256
#define HIGH (FORMAT == 12 ? 0 : 128)
#define RECORD (592 + HIGH)
#define RUN(panel, lane, run, count, EMIT)                                                          \
    {                                                                                               \
        global const uint *p_ = (panel) + (run) / 8 * RECORD;                                       \
        const int run_ = (run) % 8;                                                                 \
        global const uint *s_ = p_ + 512 + HIGH + run_ * 8;                                         \
        global const uint *b_ = p_ + 576 + HIGH;                                                    \
        const VF d_ = HALVES(b_, lane) * NUMBER(LOAD(uchar, s_, lane));                             \
        const VF m_ = -(HALVES(b_ + 8, lane) * NUMBER(LOAD(uchar, s_ + 4, lane)));                  \
        K_HIGH(p_, run_, lane)                                                                      \
        for (int w_ = 0; w_ < 4; w_++) {                                                            \
            const VU q_ = WORDS(p_ + (run_ * 4 + w_) * PANEL, lane);                                \
            K_VALUES(w_, EMIT)                                                                      \
        }                                                                                           \
    }
#if FORMAT == 12
#define K_HIGH(p, run, lane)
#define K_VALUES(w, EMIT) NIBBLES(q_, (w) * 8, d_, m_, EMIT)
#else
#define K_HIGH(p, run, lane) VU h_ = WORDS((p) + 512 + (run) * PANEL, lane);
#define K_VALUES(w, EMIT) FIVES(q_, h_, (w) * 8, d_, m_, EMIT) h_ >>= 8;
#endif

#elif FORMAT == 14

#define BLOCK 256
#define RECORD 840
#define RUN(panel, lane, run, count, EMIT)                                                          \
    {                                                                                               \
        global const uint *p_ = (panel) + (run) / 8 * RECORD;                                       \
        const int run_ = (run) % 8;                                                                 \
        const VF d_ = HALVES(p_ + 832, lane);                                                       \
        for (int w_ = 0; w_ < 4; w_++) {                                                            \
            const int half_ = run_ * 2 + w_ / 2;                                                    \
            const VF e_ = d_ * NUMBER(LOAD(char, p_ + 768 + half_ * 4, lane));                      \
            const VF m_ = e_ * -32.0f;                                                              \
            const VU q_ = WORDS(p_ + (run_ * 4 + w_) * PANEL, lane);                                \
            const VU h_ = WORDS(p_ + 512 + half_ * PANEL, lane) >> (w_ % 2 * 16);                   \
            SIXES(q_, h_, w_ * 8, e_, m_, EMIT)                                                     \
        }                                                                                           \
    }

#endif
