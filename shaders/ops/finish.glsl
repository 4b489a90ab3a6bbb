// The last dispatch of a step: its number, for the host that waits for it. One invocation.

void main() {
  if (gl_GlobalInvocationID == uvec3(0))
    results[RESULT_STEP] = step_words[push[PUSH_AUX]];
}
