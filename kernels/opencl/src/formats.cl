// Decoding of packed weights (see pack.rs). A run is 32 values of each lane; in formats without blocks,
// the last one is shorter. A run consists of words of WORD_LEN values:
//
// - START(s, panel, lane, run) declares what the values of run `run` of a panel share. `s` is a digit
//   that keeps runs apart which are decoded side by side. With one lane, `lane` is its channel.
// - WORD(s, w, lane, EMIT) calls EMIT(j, value) for the values j of word w, in ascending order. In formats
//   with blocks, it is WORD_OF(s, w, q, lane, EMIT) with q = FETCH(s, w, lane), the bits of the word.
// - REST(s, count, lane, EMIT) does so for values of a short run after its last whole word.
// - RUN(panel, lane, run, count, EMIT) decodes a whole run of `count` values.
//
// FORMAT is the number of the format in GGUF files, or ANY for formats that have no decoder of their own. BY_CHANNEL: the words of a run of a channel lie side by side, at
// QUANTS(s) + lane * RUN_WORDS.

#define RUN_LEN 32
#define ANY 255

#if LANES == 16
typedef float16 VF;
typedef uint16 VU;
#define LOAD(type, p, lane) vload16(0, (global const type *)(p))
#define HALVES(p, lane) vload_half16(0, (global const half *)(p))
#define TO_UINT(x) convert_uint16(x)
#define NUMBER(x) convert_float16(x)
#define SIGNED(x) as_int16(x)
#define TO_INT(x) convert_int16(x)
#define AS_FLOAT(x) as_float16(x)
#define SMALL(x) NUMBER(SIGNED(x))
#else
typedef float VF;
typedef uint VU;
#define LOAD(type, p, lane) (((global const type *)(p))[lane])
#define HALVES(p, lane) vload_half(lane, (global const half *)(p))
#define TO_UINT(x) ((uint)(x))
#define NUMBER(x) ((float)(x))
#define SIGNED(x) as_int(x)
#define TO_INT(x) ((int)(x))
#define AS_FLOAT(x) as_float(x)
// GPUs convert integers at a part of the rate of additions. 2^23 + x is x in the lowest bits.
#define SMALL(x) (as_float((x) | 0x4b000000u) - 8388608.0f)
#endif

#define WORDS(p, lane) LOAD(uint, p, lane)

// Eight values of 4 bits: d·q + m.
#define NIBBLE(q, j) SMALL(((q) >> (4 * (j))) & 15u)
#define NIBBLES(q, at, d, m, EMIT)                                                                  \
    EMIT((at) + 0, fma(d, NIBBLE(q, 0), m))                                                         \
    EMIT((at) + 1, fma(d, NIBBLE(q, 1), m))                                                         \
    EMIT((at) + 2, fma(d, NIBBLE(q, 2), m))                                                         \
    EMIT((at) + 3, fma(d, NIBBLE(q, 3), m))                                                         \
    EMIT((at) + 4, fma(d, NIBBLE(q, 4), m))                                                         \
    EMIT((at) + 5, fma(d, NIBBLE(q, 5), m))                                                         \
    EMIT((at) + 6, fma(d, NIBBLE(q, 6), m))                                                         \
    EMIT((at) + 7, fma(d, NIBBLE(q, 7), m))

// Eight values of 4 bits: 16·d·(1 + q/16) + m, where the bracket is made of bits.
#define FRACTION(bits) AS_FLOAT(((bits) & 0x00780000u) | 0x3f800000u)
#define FRACTIONS(q, at, d, m, EMIT)                                                                \
    EMIT((at) + 0, fma(d, FRACTION((q) << 19), m))                                                  \
    EMIT((at) + 1, fma(d, FRACTION((q) << 15), m))                                                  \
    EMIT((at) + 2, fma(d, FRACTION((q) << 11), m))                                                  \
    EMIT((at) + 3, fma(d, FRACTION((q) << 7), m))                                                   \
    EMIT((at) + 4, fma(d, FRACTION((q) << 3), m))                                                   \
    EMIT((at) + 5, fma(d, FRACTION((q) >> 1), m))                                                   \
    EMIT((at) + 6, fma(d, FRACTION((q) >> 5), m))                                                   \
    EMIT((at) + 7, fma(d, FRACTION((q) >> 9), m))

// Eight values of 5 bits; the fifth ones are the lowest bits of h.
#define FIVE(q, h, j)                                                                               \
    SMALL((((q) >> (4 * (j))) & 15u) | (((h) >> (j)) & 1u) << 4)
#define FIVES(q, h, at, d, m, EMIT)                                                                 \
    EMIT((at) + 0, fma(d, FIVE(q, h, 0), m))                                                        \
    EMIT((at) + 1, fma(d, FIVE(q, h, 1), m))                                                        \
    EMIT((at) + 2, fma(d, FIVE(q, h, 2), m))                                                        \
    EMIT((at) + 3, fma(d, FIVE(q, h, 3), m))                                                        \
    EMIT((at) + 4, fma(d, FIVE(q, h, 4), m))                                                        \
    EMIT((at) + 5, fma(d, FIVE(q, h, 5), m))                                                        \
    EMIT((at) + 6, fma(d, FIVE(q, h, 6), m))                                                        \
    EMIT((at) + 7, fma(d, FIVE(q, h, 7), m))

// Eight values of 6 bits; the upper two are the lowest bits of h.
#define SIX(q, h, j)                                                                                \
    SMALL((((q) >> (4 * (j))) & 15u) | (((h) >> (2 * (j))) & 3u) << 4)
#define SIXES(q, h, at, d, m, EMIT)                                                                 \
    EMIT((at) + 0, fma(d, SIX(q, h, 0), m))                                                         \
    EMIT((at) + 1, fma(d, SIX(q, h, 1), m))                                                         \
    EMIT((at) + 2, fma(d, SIX(q, h, 2), m))                                                         \
    EMIT((at) + 3, fma(d, SIX(q, h, 3), m))                                                         \
    EMIT((at) + 4, fma(d, SIX(q, h, 4), m))                                                         \
    EMIT((at) + 5, fma(d, SIX(q, h, 5), m))                                                         \
    EMIT((at) + 6, fma(d, SIX(q, h, 6), m))                                                         \
    EMIT((at) + 7, fma(d, SIX(q, h, 7), m))

#if FORMAT == 0 || FORMAT == 1 || FORMAT == 30

#define BLOCK 1
#define WORD_LEN 4
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
#define START(s, panel, lane, run)                                                                  \
    global const uint *p_##s = (panel) + (size_t)(run) * (RUN_LEN * RECORD);
#define WORD(s, w, lane, EMIT)                                                                      \
    {                                                                                               \
        EMIT((w) * 4 + 0, VALUES(p_##s + ((w) * 4 + 0) * RECORD, lane))                             \
        EMIT((w) * 4 + 1, VALUES(p_##s + ((w) * 4 + 1) * RECORD, lane))                             \
        EMIT((w) * 4 + 2, VALUES(p_##s + ((w) * 4 + 2) * RECORD, lane))                             \
        EMIT((w) * 4 + 3, VALUES(p_##s + ((w) * 4 + 3) * RECORD, lane))                             \
    }
#define REST(s, count, lane, EMIT)                                                                  \
    for (int j_ = (count) & ~3; j_ < (count); j_++)                                                 \
        EMIT(j_, VALUES(p_##s + j_ * RECORD, lane))

#elif FORMAT == 2 || FORMAT == 3

#define BLOCK 32
#define WORD_LEN 8
#define RECORD (FORMAT == 2 ? 72 : 80)
#if FORMAT == 2
#define START(s, panel, lane, run)                                                                  \
    global const uint *p_##s = (panel) + (size_t)(run) * RECORD;                                    \
    const VF d_##s = HALVES(p_##s + 64, lane) * 16.0f;                                              \
    const VF m_##s = d_##s * -1.5f;
#define WORD_OF(s, w, q_, lane, EMIT)                                                               \
    {                                                                                               \
        FRACTIONS(q_, (w) * 8, d_##s, m_##s, EMIT)                                                  \
    }
#else
#define START(s, panel, lane, run)                                                                  \
    global const uint *p_##s = (panel) + (size_t)(run) * RECORD;                                    \
    const VF d_##s = HALVES(p_##s + 64, lane);                                                      \
    const VF m_##s = HALVES(p_##s + 72, lane);
#define WORD_OF(s, w, q_, lane, EMIT)                                                               \
    {                                                                                               \
        NIBBLES(q_, (w) * 8, d_##s, m_##s, EMIT)                                                    \
    }
#endif

#elif FORMAT == 6 || FORMAT == 7

#define BLOCK 32
#define WORD_LEN 8
#define RECORD (FORMAT == 6 ? 88 : 96)
#if FORMAT == 6
#define MINIMUM(s, lane) d_##s * -16.0f
#else
#define MINIMUM(s, lane) HALVES(p_##s + 88, lane)
#endif
#define START(s, panel, lane, run)                                                                  \
    global const uint *p_##s = (panel) + (size_t)(run) * RECORD;                                    \
    const VU h_##s = WORDS(p_##s + 64, lane);                                                       \
    const VF d_##s = HALVES(p_##s + 80, lane);                                                      \
    const VF m_##s = MINIMUM(s, lane);
#define WORD_OF(s, w, q_, lane, EMIT)                                                               \
    {                                                                                               \
        const VU five_ = h_##s >> (uint)((w) * 8);                                                  \
        FIVES(q_, five_, (w) * 8, d_##s, m_##s, EMIT)                                               \
    }

#elif FORMAT == 8

#define BLOCK 32
#define WORD_LEN 4
#define RECORD 136
#define START(s, panel, lane, run)                                                                  \
    global const uint *p_##s = (panel) + (size_t)(run) * RECORD;                                    \
    const VF d_##s = HALVES(p_##s + 128, lane);
#define WORD_OF(s, w, q_, lane, EMIT)                                                               \
    {                                                                                               \
        EMIT((w) * 4 + 0, d_##s * NUMBER(SIGNED(q_ << 24) >> 24))                                   \
        EMIT((w) * 4 + 1, d_##s * NUMBER(SIGNED(q_ << 16) >> 24))                                   \
        EMIT((w) * 4 + 2, d_##s * NUMBER(SIGNED(q_ << 8) >> 24))                                    \
        EMIT((w) * 4 + 3, d_##s * NUMBER(SIGNED(q_) >> 24))                                         \
    }

#elif FORMAT == 12 || FORMAT == 13

#define BLOCK 256
#define WORD_LEN 8
#define HIGH (FORMAT == 12 ? 0 : 128)
#define RECORD (592 + HIGH)
#define SCALE(s, lane) NUMBER(TO_INT(LOAD(uchar, b_##s + 512 + HIGH + r_##s * 8, lane)))
#define MINIMUM(s, lane) NUMBER(TO_INT(LOAD(uchar, b_##s + 512 + HIGH + r_##s * 8 + 4, lane)))
#define START(s, panel, lane, run)                                                                  \
    global const uint *b_##s = (panel) + (size_t)((run) / 8) * RECORD;                              \
    const int r_##s = (run) % 8;                                                                    \
    global const uint *p_##s = b_##s + r_##s * 4 * PANEL;                                           \
    const VF d_##s = HALVES(b_##s + 576 + HIGH, lane) * SCALE(s, lane);                             \
    const VF m_##s = -(HALVES(b_##s + 584 + HIGH, lane) * MINIMUM(s, lane));                        \
    FIFTHS(s, lane)
#if FORMAT == 12
#define FIFTHS(s, lane)
#define WORD_OF(s, w, q_, lane, EMIT)                                                               \
    {                                                                                               \
        NIBBLES(q_, (w) * 8, d_##s, m_##s, EMIT)                                                    \
    }
#else
#define FIFTHS(s, lane) const VU h_##s = WORDS(b_##s + 512 + r_##s * PANEL, lane);
#define WORD_OF(s, w, q_, lane, EMIT)                                                               \
    {                                                                                               \
        const VU five_ = h_##s >> (uint)((w) * 8);                                                  \
        FIVES(q_, five_, (w) * 8, d_##s, m_##s, EMIT)                                               \
    }
#endif

#elif FORMAT == 14

#define BLOCK 256
#define WORD_LEN 8
#define RECORD 840
#define START(s, panel, lane, run)                                                                  \
    global const uint *b_##s = (panel) + (size_t)((run) / 8) * RECORD;                              \
    const int r_##s = (run) % 8;                                                                    \
    const VF d_##s = HALVES(b_##s + 832, lane);
#define QUANTS(s) (b_##s + r_##s * 4 * PANEL)
#define WORD_OF(s, w, q_, lane, EMIT)                                                               \
    {                                                                                               \
        const int half_ = r_##s * 2 + (w) / 2;                                                      \
        const VF e_ = d_##s * NUMBER(TO_INT(LOAD(char, b_##s + 768 + half_ * 4, lane)));            \
        const VF m_ = e_ * -32.0f;                                                                  \
        const VU h_ = WORDS(b_##s + 512 + half_ * PANEL, lane) >> (uint)((w) % 2 * 16);             \
        SIXES(q_, h_, (w) * 8, e_, m_, EMIT)                                                        \
    }

#elif FORMAT == ANY

// Unsigned integers of 8 bits, and floats: a scale of each half run, then a minimum of each.
#define BLOCK 32
#define WORD_LEN 4
#define RECORD 192
#define BYTE(q, j) SMALL(((q) >> (8 * (j))) & 255u)
#define START(s, panel, lane, run)                                                                  \
    global const uint *p_##s = (panel) + (size_t)(run) * RECORD;
#define WORD_OF(s, w, q_, lane, EMIT)                                                               \
    {                                                                                               \
        const VF d_ = LOAD(float, p_##s + 128 + (w) / 4 * PANEL, lane);                             \
        const VF m_ = LOAD(float, p_##s + 160 + (w) / 4 * PANEL, lane);                             \
        EMIT((w) * 4 + 0, fma(d_, BYTE(q_, 0), m_))                                                 \
        EMIT((w) * 4 + 1, fma(d_, BYTE(q_, 1), m_))                                                 \
        EMIT((w) * 4 + 2, fma(d_, BYTE(q_, 2), m_))                                                 \
        EMIT((w) * 4 + 3, fma(d_, BYTE(q_, 3), m_))                                                 \
    }

#else
#error "FORMAT has no decoder"
#endif

// Runs of formats with blocks are whole.
#if BLOCK > 1
#define WHOLE(count) RUN_LEN
#define REST(s, count, lane, EMIT)
#ifndef QUANTS
#define QUANTS(s) p_##s
#endif
#define RUN_WORDS (RUN_LEN / WORD_LEN)
#if !BY_CHANNEL
#define FETCH(s, w, lane) WORDS(QUANTS(s) + (w) * PANEL, lane)
#elif LANES == 1
#define FETCH(s, w, lane) QUANTS(s)[(lane) * RUN_WORDS + (w)]
#else
#define OF_LANE(s, w, l) QUANTS(s)[(l) * RUN_WORDS + (w)]
#define OF_FOUR(s, w, l)                                                                            \
    OF_LANE(s, w, l), OF_LANE(s, w, (l) + 1), OF_LANE(s, w, (l) + 2), OF_LANE(s, w, (l) + 3)
#define FETCH(s, w, lane)                                                                           \
    (VU)(OF_FOUR(s, w, 0), OF_FOUR(s, w, 4), OF_FOUR(s, w, 8), OF_FOUR(s, w, 12))
#endif
#define WORD(s, w, lane, EMIT)                                                                      \
    {                                                                                               \
        const VU word_ = FETCH(s, w, lane);                                                         \
        WORD_OF(s, w, word_, lane, EMIT)                                                            \
    }
#else
#define WHOLE(count) (count)
#endif

#define RUN(panel, lane, run, count, EMIT)                                                          \
    {                                                                                               \
        START(0, panel, lane, run)                                                                  \
        for (int w_ = 0; w_ < WHOLE(count) / WORD_LEN; w_++)                                        \
            WORD(0, w_, lane, EMIT)                                                                 \
        REST(0, count, lane, EMIT)                                                                  \
    }
