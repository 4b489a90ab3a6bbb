// RUN: cortiq-opt %s --split-input-file --verify-diagnostics --cmf-verify-model

module attributes {cmf.model = {architecture = "llama", hidden = 8, layers = 2, vocab = 10, trained_context = 64}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x10xf32> {
    %w = cmf.weight "w" : !cmf.weight<10x8, f32>
    %h = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<10x8, f32>
    %a = cmf.attention %h, %h, %h {layer = 0 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
    %b = cmf.attention %a, %a, %a {layer = 1 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
    %l = cmf.fused_matmul %b weights(%w) : tensor<?x8xf32> weights(!cmf.weight<10x8, f32>)
    return %l : tensor<?x10xf32>
  }
}

// -----

// expected-error @below {{has no attribute 'cmf.model': this is no model}}
module {
}

// -----

// expected-error @below {{'cmf.model' needs a positive integer 'layers'}}
module attributes {cmf.model = {architecture = "llama", hidden = 8, vocab = 10, trained_context = 64}} {
}

// -----

// expected-error @below {{has no function '@forward'}}
module attributes {cmf.model = {architecture = "llama", hidden = 8, layers = 2, vocab = 10, trained_context = 64}} {
}

// -----

module attributes {cmf.model = {architecture = "llama", hidden = 8, layers = 2, vocab = 10, trained_context = 64}} {
  // expected-error @below {{'@forward' has type '(tensor<?xi32>) -> tensor<?xi32>', but a model with 10 tokens needs '(tensor<?xi32>) -> tensor<?x10xf32>'}}
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?xi32> {
    return %ids : tensor<?xi32>
  }
}

// -----

module attributes {cmf.model = {architecture = "llama", hidden = 8, layers = 1, vocab = 8, trained_context = 64}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x8xf32> {
    %w = cmf.weight "w" : !cmf.weight<8x8, f32>
    %h = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<8x8, f32>
    // expected-error @below {{is of layer 1, but the model has 1 layers}}
    %a = cmf.attention %h, %h, %h {layer = 1 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
    return %a : tensor<?x8xf32>
  }
}

// -----

module attributes {cmf.model = {architecture = "llama", hidden = 8, layers = 1, vocab = 8, trained_context = 64}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x8xf32> {
    %w = cmf.weight "w" : !cmf.weight<8x8, f32>
    %h = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<8x8, f32>
    %a = cmf.attention %h, %h, %h {layer = 0 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
    // expected-error @below {{is of layer 0, which comes after layer 0: each layer has one cache, and layers run in order}}
    %b = cmf.attention %a, %a, %a {layer = 0 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
    return %b : tensor<?x8xf32>
  }
}

// -----

module attributes {cmf.model = {architecture = "lfm2", hidden = 8, layers = 1, vocab = 8, trained_context = 64}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x8xf32> {
    %w = cmf.weight "w" : !cmf.weight<8x8, f32>
    %t = cmf.weight "t" : !cmf.weight<8x3, f32>
    %h = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<8x8, f32>
    %a = cmf.causal_conv %h, %t {state = 2 : i64} : tensor<?x8xf32>, !cmf.weight<8x3, f32>
    // expected-error @below {{has state 2, which an earlier operation has: each has its own}}
    %b = cmf.causal_conv %a, %t {state = 2 : i64} : tensor<?x8xf32>, !cmf.weight<8x3, f32>
    return %b : tensor<?x8xf32>
  }
}
