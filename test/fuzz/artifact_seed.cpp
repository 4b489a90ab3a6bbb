// Writes the seeds that only our own writers can make: artifact_seed ARTIFACT ARTIFACT_OF_TWO TOKENIZER_JSON SECTION

#include <cstdio>
#include <string_view>

#include "formats/mapped_file.h"
#include "runtime/text/text_section.h"
#include "test/unit/base/test_files.h"
#include "test/unit/runtime/tiny_model.h"

int main(int argc, char** argv) {
  using namespace cortiq;
  if (argc != 5)
    return 2;
  test::TinyModel model;
  if (const Status status = model.write(argv[1]); !status.ok()) {
    std::fprintf(stderr, "artifact_seed: %s\n", status.message().c_str());
    return exit_code(status);
  }
  model.targets = {"plain", "better"};
  if (const Status status = model.write(argv[2]); !status.ok())
    return exit_code(status);
  const StatusOr<formats::MappedFile> json = formats::MappedFile::open(argv[3]);
  if (!json.ok())
    return exit_code(json.status());
  const auto section = runtime::text::pack_text_section(json->bytes(), {});
  if (section.ok())
    test::write_bytes(argv[4], *section);
  return 0;
}
