#include "tools/cortiq-bench/pipeline_report.h"

#include <algorithm>
#include <cstdio>

namespace cortiq::bench {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

} // namespace

nlohmann::ordered_json pipelines_json(const std::vector<runtime::GpuPipeline>& pipelines) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const runtime::GpuPipeline& pipeline : pipelines) {
    nlohmann::ordered_json statistics = nlohmann::ordered_json::object();
    for (const auto& [name, value] : pipeline.statistics)
      statistics[name] = value;
    out.push_back({{"module", pipeline.module}, {"seconds", pipeline.seconds}, {"statistics", std::move(statistics)}});
  }
  return out;
}

std::string describe_pipelines(const std::vector<runtime::GpuPipeline>& pipelines) {
  if (pipelines.empty())
    return {};
  double seconds = 0;
  const runtime::GpuPipeline* slowest = &pipelines.front();
  struct Most {
    std::string name;
    double value;
    const std::string* module;
  };
  std::vector<Most> most;
  for (const runtime::GpuPipeline& pipeline : pipelines) {
    seconds += pipeline.seconds;
    if (pipeline.seconds > slowest->seconds)
      slowest = &pipeline;
    for (const auto& [name, value] : pipeline.statistics) {
      const auto place = std::ranges::find(most, name, &Most::name);
      if (place == most.end())
        most.push_back({name, value, &pipeline.module});
      else if (value > place->value)
        *place = {name, value, &pipeline.module};
    }
  }
  std::string out = std::to_string(pipelines.size()) + " pipelines made in " + number(seconds * 1e3) +
                    " ms, the slowest in " + number(slowest->seconds * 1e3) + " ms: " + slowest->module + "\n";
  for (const Most& row : most)
    out += row.name + " at most " + number(row.value) + ": " + *row.module + "\n";
  return out;
}

} // namespace cortiq::bench
