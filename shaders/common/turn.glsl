// Cosine and sine to f32's precision; the built-in ones are allowed errors of 2^-11.

vec2 cosine_sine(float x) {
  // x = quarter * pi / 2 + r, |r| <= pi / 4; the parts of pi / 2 are short enough for exact products with small numbers.
  float quarter = roundEven(x * 0.63661977236758134);
  float r = fma(-quarter, 1.5703125, x);
  r = fma(-quarter, 4.837512969970703e-4, r);
  r = fma(-quarter, 7.549790126404332e-8, r);
  float s = r * r;
  // Taylor's series, whose next terms are below half a unit of the last place.
  float sine = r * fma(s, fma(s, fma(s, fma(s, 1.0 / 362880.0, -1.0 / 5040.0), 1.0 / 120.0), -1.0 / 6.0), 1.0);
  float cosine = fma(s, fma(s, fma(s, fma(s, fma(s, -1.0 / 3628800.0, 1.0 / 40320.0), -1.0 / 720.0), 1.0 / 24.0), -0.5), 1.0);
  int turn = int(quarter) & 3;
  vec2 turned = turn % 2 == 0 ? vec2(cosine, sine) : vec2(sine, cosine);
  return vec2(turn == 1 || turn == 2 ? -turned.x : turned.x, turn >= 2 ? -turned.y : turned.y);
}
