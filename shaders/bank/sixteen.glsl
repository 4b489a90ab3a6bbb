// For a bank of sixteen segments.
#define BANK_SEGMENTS 16
