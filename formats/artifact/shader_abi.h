#pragma once

// The calling contract of shaders: shared by the shader templates (shaders/), what specialises them, the compiler that
// records dispatches of them in an artifact, and the runtime that binds their buffers.
//
// All shaders have one pipeline layout: descriptor set 0 with the storage buffers below, sixteen words of push
// constants, specialisation constants for all that a compilation knows. Nothing that a step changes is a push constant,
// so recorded commands can be replayed; it stands in the step buffer.
//
// Values lie in the arena, f32, one row a token: row t of a value at start + t * stride, both in floats, starts and
// strides multiples of 4. A row is in natural order, or in lane order (what matrices read): padded with zeros to a
// multiple of kShaderRowPadding, value i = 32 g + 4 j + c at (((g / 32) * 8 + j) * 32 + g % 32) * 4 + c.
//
// A dispatch of the head (push constant kPushHead is 1) works on tokens [head_first, head_first + head_count) of the
// step, any other on [0, tokens); row and token numbers are the step's in both. Workgroups of tokens beyond return at
// once. Grid: z = tokens (or chunks of them), x (going on in y) what the operation says.

#include <cstdint>

namespace cortiq::formats {

/// Storage buffers of descriptor set 0.
enum ShaderBinding : uint32_t {
  kBindWeight = 0, ///< a matrix in layout kPlanes
  kBindArena = 1,
  kBindVectors = 2, ///< all f32 vectors of the model, and tables of words, one behind the other
  kBindCache =
      3, ///< one layer's: [position]{[kv_heads][k_dim] keys, [kv_heads][v_dim] values}; a ring where kRing is not 0
  kBindStep = 4,
  kBindResult = 5, ///< read by the host: word 0 counts steps, from word kResultIds on the ids that argmax chose
  kShaderBindings = 6,
  kBindBank = 6, ///< an array of segments, of the bank's pipelines only
};

/// Segments of an expert bank: as many as most devices bind, and twice that.
inline constexpr uint32_t kBankSegments = 8, kBankMostSegments = 16;
/// A place in a bank's remap table of an expert that is not resident.
inline constexpr uint32_t kNoBankSlot = 0xFFFFFFFF;

inline constexpr uint32_t kPushWords = 16;
/// What a step's number is copied to, last of all.
inline constexpr uint32_t kResultStep = 0;
/// The number of a layer, plus one, of which a key or value does not fit its cache.
inline constexpr uint32_t kResultOverflow = 1;
inline constexpr uint32_t kResultIds = 4;
inline constexpr uint64_t kShaderRowPadding = 1024;

/// Head of the step buffer, in words; behind it the ids of max_batch tokens, then for each rotation table
/// [max_batch][pairs] cosines and the same of sines.
enum StepWord : uint32_t { kStepTokens = 0, kStepPosition = 1, kStepHeadFirst = 2, kStepHeadCount = 3, kStepIds = 4 };

/// Words of the push constants. Starts are in floats within the bound range, strides in floats a token.
enum PushWord : uint32_t {
  kPushWeight = 0, ///< start in 16-byte units
  kPushInput = 1,
  kPushOut = 2,
  kPushVector = 3, ///< start of the first vector: norm weight, bias, q norm, sinks, table of words
  kPushAux = 4,    ///< second input: residual, addend, up, keys
  kPushInputStride = 5,
  kPushOutStride = 6,
  kPushCounters = 6, ///< with kSpecJoin, of a single token: words that are zero between dispatches, one a result
  kPushAuxStride = 7,
  kPushThird = 8, ///< third row: sum_out of a norm, values of attention_prep
  kPushThirdStride = 9,
  kPushCosines = 10, ///< of token 0, in words of the step buffer
  kPushSines = 11,
  kPushVector2 = 12,     ///< second vector: bias of a norm, k norm
  kPushLayer = 0,        ///< of operations on a cache: the layer's number, plus one; set at load
  kPushSegmentSlots = 0, ///< of the bank's products: slots a segment; set at load
  // Of attention only:
  kPushSinks = 13,  ///< with kSpecPrep: the sinks, kPushVector being the norm of q
  kPushShares = 14, ///< with kSpecShares: kSpecValueDim + 2 floats a share, head by head of each token
  // Of gated_delta, kda and vmf_phase only:
  kPushBeta = 10,
  kPushBetaStride = 11,
  kPushHeadNorm = 13,
  kPushFades = 14,  ///< what decays come of; a token's row is kPushInputStride from the last one's
  kPushOpening = 7, ///< gates of the result; kPushThirdStride from the last token's
  // Of attention_anchored only:
  kPushAnchorKeys = 10, ///< vectors
  kPushAnchorValues = 11,
  kPushWindows = 12, ///< table of words
  // Of matrices only:
  kPushSquaresIn = 10,  ///< parts of the sum of squares, kSpecNormIn a token
  kPushRoutes = 11,     ///< with kSpecExperts: what moe_route left, in words
  kPushWeight2 = 13,    ///< second matrix of a pair, as kPushWeight
  kPushSquaresOut = 14, ///< where kSpecNormOut leaves its parts, one f32 a workgroup, workgroups a token
  // Of matrices of a single token only, in the place of what that does not need:
  kPushEightBits = 9, ///< with kSpecQuantOut 2: where the third row in 8 bits goes
  kPushClass = 12,  ///< with kSpecClassed: of each expert its number among the matrices, all ones = it has none; words
                    ///< of the vectors
  kPushShared = 13, ///< with kSpecShared: a row that is added
  kPushSharedGate = 10, ///< with kSpecShared 2: its gate
  kPushLogits = 4,      ///< with kSpecRoute
  kPushRouteBias = 7,
  kPushRouteScales = 8,
  // Of moe_combine only:
  kPushGate = 12, ///< of the shared row, of which there is one a token
  kPushGateStride = 14,
  // Of cut and moe_route only:
  kPushMask = 11, ///< with kSpecMasked: a bit a column, in words among the vectors; set at load
  kPushHead = 15,
};

/// The first words of the arena, which are zero between dispatches; see kSpecJoin.
inline constexpr uint32_t kCounterWords = 256;

/// Ids of specialisation constants; a template has those that its operation needs. f32 constants are given as their
/// bits.
enum SpecId : uint32_t {
  kSpecLocal = 0, ///< invocations a workgroup
  kSpecRows = 1,  ///< of the matrix; elements of a row for operations without one
  kSpecCols = 2,
  kSpecLanes = 3,    ///< invocations that share a row
  kSpecTokens = 4,   ///< tokens a workgroup
  kSpecTeamRows = 5, ///< rows of such a team
  kSpecOutOrder = 6, ///< 0 natural, 1 lanes
  kSpecBias = 7,
  kSpecResidual = 8,
  kSpecScale = 9, ///< f32
  kSpecHeads = 10,
  kSpecKvHeads = 11,
  kSpecHeadDim = 12,
  kSpecValueDim = 13,
  kSpecPairs = 14,             ///< rotated pairs of a head: i and i + pairs; 0 = no rotation
  kSpecNormFlags = 15,         ///< HeadNormFlag
  kSpecEps = 16,               ///< f32
  kSpecWindow = 17,            ///< positions visible, 0 = all
  kSpecRing = 18,              ///< position p stands at p % ring, 0 = at p
  kSpecSoftcap = 19,           ///< f32, 0 = none
  kSpecSinks = 20,             ///< 1: a sink a head at kPushVector
  kSpecActivation = 21,        ///< artifact::Activation
  kSpecAlpha = 22,             ///< f32
  kSpecLimit = 23,             ///< f32
  kSpecCache = 24,             ///< CacheKind; left open until an artifact is loaded
  kSpecTemperatureLength = 25, ///< f32, 0 = none
  kSpecTemperatureScale = 26,  ///< f32
  kSpecAdd = 27,               ///< norm: 1 = the row at kPushAux is added first
  kSpecSumOut = 28,            ///< norm: 1 = the sum is written to kPushThird
  kSpecCentered = 29,          ///< norm: 1 = LayerNorm
  kSpecWeighted = 30,          ///< norm: 1 = multiplied by the vector at kPushVector
  kSpecFunction = 31,          ///< gate: artifact::GateFunction
  kSpecGroup = 32,             ///< gate: values of x for one of g
  kSpecColumnScales = 33,      ///< matrix with column scales: 0 = the input has them already
  kSpecPair = 34,              ///< matrix: 1 = out = activation(W x) * (W2 x)
  kSpecNormOut = 35,           ///< matrix: 1 = the third row gets out times the vector at kPushVector2, in lane order
  kSpecNormIn = 36,   ///< matrix: parts of the input's sum of squares; the product is divided by its root mean square
  kSpecQuantOut = 37, ///< matrix: 1 = the output in lane order is in 8 bits (the third row with kSpecNormOut), 2 = that
                      ///< is both, of a single token
  kSpecPrep = 38,     ///< attention: 1 = a single token, on whose heads it does the work of rope_kv too
  kSpecShares = 39,   ///< attention: parts of the positions, y of the grid; attention_combine joins more than one
  kSpecExperts = 40,  ///< experts chosen a token; matrix: the rows' tokens each have that many matrices
  kSpecSum = 41, ///< matrix of experts: 1 = inputs are pairs' rows, and a token's products are summed; moe_combine:
                 ///< 1 = of two rows a token as many as kPushVector says are added as they are
  kSpecExpertUnits = 42, ///< from one expert's matrix to the next, in 16 bytes
  kSpecScoring = 43,     ///< moe_route: artifact::Scoring
  kSpecNormalize = 44,   ///< moe_route
  kSpecNormEpsilon = 45, ///< f32
  kSpecNormMinimum = 46, ///< f32
  kSpecGroups = 47,
  kSpecGroupsUsed = 48,
  kSpecOneToken = 49, ///< all: 1 = the step has one token, which spares a wait for the step buffer
  kSpecTaps = 50,     ///< of a convolution
  kSpecTiled = 51,    ///< gated_delta: as GatedDeltaOp
  kSpecRates = 52,
  kSpecSigmoidGate = 53,
  kSpecPlan = 54,    ///< matrix of experts: workgroups take tiles of moe_plan; inputs are 1 tokens' rows, 2 pairs' rows
  kSpecInOrder = 55, ///< as kSpecOutOrder, of what is read
  kSpecShared = 56,  ///< matrix, moe_combine: 1 = a row more is added, 2 = times the logistic function of its gate
  kSpecRoute = 57,   ///< matrix of experts: 1 = a single token, whose experts every workgroup chooses itself
  kSpecRouted = 58,  ///< experts to choose from
  kSpecRouteScale = 59, ///< f32
  kSpecRouteBias = 69,
  kSpecTop = 70,        ///< top_logits: values a record
  kSpecMasked = 71,     ///< moe_route: 1 = experts whose bit at kPushMask is clear are closed
  kSpecClassed = 72,    ///< matrix of experts in tiles: 1 = not all experts are among the matrices
  kSpecFirstRow = 73,   ///< embed of a part: of the rows that are bound
  kSpecAllRows = 74,    ///< embed of a part: rows of the whole
  kSpecAhead = 75,      ///< matrix: groups of 32 weights that a lane asks for at a time; attention: positions of a team
  kSpecJoin = 76,       ///< 1 = the last workgroup of those that share a result joins their parts; kPushCounters
  kSpecInverse = 90,    ///< hadamard: as HadamardOp
  kSpecRounded = 91,    ///< hadamard: HadamardOp's half
  kSpecCorrects = 92,   ///< vmf_phase: VmfPhaseOp's delta
  kSpecAnchors = 93,    ///< attention_anchored: keys and values of the weights a KV head
  kSpecWindows = 94,    ///< attention_anchored: 1 = a window a KV head at kPushWindows
  kSpecStill = 95,      ///< rope_kv: 1 = queries are kept as they were too
  kSpecSets = 96,       ///< matmul_cm_*: tiles in shared memory, of which one is filled while another is read
  kSpecSubRows = 110,   ///< matmul_cm_half: rows of each matrix that a subgroup has,
  kSpecSubTokens = 111, ///< and its tokens
  kSpecRings = 112,     ///< matmul_cm_half: steps that are on their way from memory at a time, 1 or 2
  kSpecSubgroups = 80,  ///< all: 0 = for devices whose subgroups exchange nothing
  // Of the expert bank (shaders/bank/segments.glsl):
  kSpecBankSlotWords = 61, ///< words of a slot's gate, and of its up
  kSpecBankDownSlotWords = 62,
  kSpecBankInner = 63,       ///< rows of gate and up
  kSpecBankHidden = 64,      ///< rows of down
  kSpecBankWinners = 65,     ///< slots a token, the shared expert's included
  kSpecBankLimit = 66,       ///< f32
  kSpecBankPreweighted = 67, ///< 1 = bf16 between the products, the weight in the first
  kSpecBankSharedSlot = 68,  ///< all ones = none
};

/// What a program needs of a device beside Vulkan 1.2.
enum GpuNeed : uint32_t {
  kNeedsIntegerDot = 1,
  kNeedsCooperative = 2,  ///< cooperative matrices of signed bytes, 16 x 8 x 32, summed in 32 bits by subgroups of 32
  kNeedsSubgroups = 4,    ///< subgroups that exchange values
  kNeedsHalfMatrices = 8, ///< cooperative matrices of f16, 16 x 8 x 16, summed in f32 by subgroups of 32
};

/// What keys and values are in a cache on the device. In 8 bits those of a head are groups of 32, the last of which may
/// be shorter: their factors in f32, then their codes, four a word.
enum CacheKind : uint32_t { kCacheF32 = 0, kCacheF16 = 1, kCacheQ8 = 2 };
inline constexpr uint32_t kCacheGroup = 32;

enum HeadNormFlag : uint32_t { kNormQ = 1, kNormK = 2, kNormAfterRope = 4, kNormV = 8 };

} // namespace cortiq::formats
