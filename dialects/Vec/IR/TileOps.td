// Operations on a unit of tile registers: eight two-dimensional registers that a matrix product of bytes is made of.
// Ops.td includes this file.

#ifndef CORTIQ_VEC_TILE_OPS_TD
#define CORTIQ_VEC_TILE_OPS_TD

// Tiles are state of the machine and named by number: their shapes belong to the kernel, not to a value. Reading and
// writing memory stands for that state too, so that no pass moves one of these past another or past a load or store.
class Vec_TileOp<string mnemonic> : Vec_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]>;

def Vec_TileConfigOp : Vec_TileOp<"tile_config"> {
  let summary = "gives the tiles their shapes and zeroes them";
  let description = [{
    Tile i has `rows[i]` rows (1 to 16) of `bytes[i]` bytes (4 to 64, a multiple of 4); tiles behind the last given one
    cannot be used. Comes before every other operation on tiles.

    ```mlir
    vec.tile_config rows [16, 16, 8] bytes [64, 32, 64]
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$rows, DenseI64ArrayAttr:$bytes);
  let assemblyFormat = "`rows` $rows `bytes` $bytes attr-dict";
  let hasVerifier = 1;
}

def Vec_TileReleaseOp : Vec_TileOp<"tile_release"> {
  let summary = "gives the tile unit back";
  let description = [{
    The system need not save tiles any more. Comes after every other operation on tiles.

    ```mlir
    vec.tile_release
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Vec_TileZeroOp : Vec_TileOp<"tile_zero"> {
  let summary = "zeroes a tile";
  let description = [{
    ```mlir
    vec.tile_zero 0
    ```
  }];
  let arguments = (ins I64Attr:$tile);
  let assemblyFormat = "$tile attr-dict";
  let hasVerifier = 1;
}

def Vec_TileLoadOp : Vec_TileOp<"tile_load"> {
  let summary = "reads a tile from memory";
  let description = [{
    Row r of the tile comes from `ptr + offset + r * stride` bytes.

    ```mlir
    vec.tile_load 1, %p[0] stride 128
    ```
  }];
  let arguments = (ins I64Attr:$tile, Vec_PtrType:$ptr, I64Attr:$offset, I64Attr:$stride);
  let assemblyFormat = "$tile `,` $ptr `[` $offset `]` `stride` $stride attr-dict";
  let hasVerifier = 1;
}

def Vec_TileStoreOp : Vec_TileOp<"tile_store"> {
  let summary = "writes a tile to memory";
  let description = [{
    Row r of the tile goes to `ptr + offset + r * stride` bytes.

    ```mlir
    vec.tile_store 0, %p[0] stride 64
    ```
  }];
  let arguments = (ins I64Attr:$tile, Vec_PtrType:$ptr, I64Attr:$offset, I64Attr:$stride);
  let assemblyFormat = "$tile `,` $ptr `[` $offset `]` `stride` $stride attr-dict";
  let hasVerifier = 1;
}

def Vec_TileDotOp : Vec_TileOp<"tile_dot"> {
  let summary = "adds the product of two tiles of signed bytes to a tile of i32";
  let description = [{
    `acc[m][n] += sum over k of lhs[m][k] * rhs[k / 4][4 n + k % 4]`, in i32 that wraps: `lhs` has a row a row of `acc`,
    `rhs` a row for four bytes of `lhs`, with the four that belong to column n side by side.

    ```mlir
    vec.tile_dot 0, 1, 2
    ```
  }];
  let arguments = (ins I64Attr:$acc, I64Attr:$lhs, I64Attr:$rhs);
  let assemblyFormat = "$acc `,` $lhs `,` $rhs attr-dict";
  let hasVerifier = 1;
}

def Vec_TileDotBf16Op : Vec_TileOp<"tile_dot_bf16"> {
  let summary = "adds the product of two tiles of bf16 to a tile of f32";
  let description = [{
    `acc[m][n] += sum over k of lhs[m][k] * rhs[k / 2][2 n + k % 2]`: `lhs` has a row a row of `acc`, `rhs` a row for two
    numbers of `lhs`, with the two that belong to column n side by side. Products of even and of odd k are summed apart,
    each by multiply-adds in the order of k; then one sum is added to the other, and that to `acc`. All roundings are to
    the nearest, halves to even; subnormals, read or made, are 0.

    ```mlir
    vec.tile_dot_bf16 0, 1, 2
    ```
  }];
  let arguments = (ins I64Attr:$acc, I64Attr:$lhs, I64Attr:$rhs);
  let assemblyFormat = "$acc `,` $lhs `,` $rhs attr-dict";
  let hasVerifier = 1;
}

#endif
