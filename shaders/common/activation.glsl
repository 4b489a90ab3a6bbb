// Activation functions of gated units (formats/artifact/artifact.fbs, Activation).

const uint kSilu = 0, kGeluTanh = 1, kGeluErf = 2, kRelu = 3, kSitu = 4, kSwigluOai = 5;

float times_logistic(float x, float s) { return x / (1.0 + exp(-s)); }

// tanh without its overflow for large arguments.
float bounded_tanh(float x) { return 1.0 - 2.0 / (exp(2.0 * clamp(x, -20.0, 20.0)) + 1.0); }

// erf to 1.2e-7, by an exponential of a polynomial.
float error_function(float x) {
  float a = abs(x);
  float t = 1.0 / (1.0 + 0.5 * a);
  float e = t * exp(-a * a - 1.26551223 +
                    t * (1.00002368 +
                         t * (0.37409196 +
                              t * (0.09678418 +
                                   t * (-0.18628806 +
                                        t * (0.27886807 +
                                             t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277)))))))));
  return x < 0.0 ? e - 1.0 : 1.0 - e;
}

float activate(float x, uint activation) {
  if (activation == kSilu)
    return times_logistic(x, x);
  if (activation == kGeluTanh)
    return times_logistic(x, 1.5957691216057308 * (x + 0.044715 * x * x * x));
  if (activation == kGeluErf)
    return 0.5 * x * (1.0 + error_function(x * 0.70710678118654752));
  if (activation == kRelu)
    return max(x, 0.0);
  return x;
}

float gated(float gate, float up, uint activation, float alpha, float limit) {
  if (activation == kSwigluOai) {
    gate = min(gate, limit);
    up = clamp(up, -limit, limit) + 1.0;
    return times_logistic(gate, alpha * gate) * up;
  }
  if (activation == kSitu) {
    if (limit > 0.0)
      up = limit * bounded_tanh(up / limit);
    return times_logistic(alpha * bounded_tanh(gate / alpha), gate) * up;
  }
  return activate(gate, activation) * up;
}
