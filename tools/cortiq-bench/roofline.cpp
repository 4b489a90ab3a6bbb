#include "tools/cortiq-bench/roofline.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "formats/atomic_file.h"

namespace cortiq::bench {
namespace {

constexpr double kLeft = 70, kTop = 50, kWidth = 560, kHeight = 430, kLegend = kLeft + kWidth + 30, kLine = 15;
constexpr const char* kColours[] = {"#1f6fb4", "#d1602a", "#3a8f4d", "#8a57a8"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    default:
      // Bytes that no XML may hold, and those whose encoding nobody has checked, become question marks.
      out += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? '?' : c;
    }
  return out;
}

/// Decades of one axis.
struct Axis {
  double least, most; ///< exponents of ten
  double origin, length;
  double operator()(double value) const { return origin + (std::log10(value) - least) / (most - least) * length; }
};

Axis axis_over(std::vector<double> values, double origin, double length) {
  std::erase_if(values, [](double v) { return !(v > 0) || !std::isfinite(v); });
  if (values.empty())
    values = {1};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double least = std::floor(std::log10(*low)), most = std::ceil(std::log10(*high) + 1e-9);
  return {least, std::max(most, least + 1), origin, length};
}

class Svg {
public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    char line[400];
    va_list values;
    va_start(values, format);
    std::vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    text_ += line;
    text_ += '\n';
  }
  void text(double x, double y, const std::string& words, const char* attributes = "") {
    add("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    text_ += escaped(words) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, const char* attributes) {
    add("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>", x1, y1, x2, y2, attributes);
  }
  const std::string& str() const { return text_; }

private:
  std::string text_;
};

std::string power_of_ten(double exponent, const char* unit) {
  char text[60];
  std::snprintf(text, sizeof(text), "%g%s", std::pow(10, exponent), unit);
  return text;
}

void draw_axes(Svg& svg, const Axis& x, const Axis& y) {
  for (double e = x.least; e <= x.most; ++e) {
    const double at = x(std::pow(10, e));
    svg.line(at, kTop, at, kTop + kHeight, "stroke=\"#ddd\"");
    svg.text(at, kTop + kHeight + 16, power_of_ten(e, ""), "text-anchor=\"middle\"");
  }
  for (double e = y.least; e <= y.most; ++e) {
    const double at = y(std::pow(10, e));
    svg.line(kLeft, at, kLeft + kWidth, at, "stroke=\"#ddd\"");
    svg.text(kLeft - 6, at + 4, power_of_ten(e, ""), "text-anchor=\"end\"");
  }
  svg.text(kLeft + kWidth / 2, kTop + kHeight + 34, "operations a byte", "text-anchor=\"middle\"");
  svg.text(kLeft - 60, kTop - 10, "10^12 operations a second");
}

void draw_ceilings(Svg& svg, const Axis& x, const Axis& y, const Ceilings& ceilings) {
  const double slope = ceilings.memory.best * 1e-3; // 10^12 operations a second at one operation a byte
  const double first = std::pow(10, x.least), last = std::pow(10, x.most);
  const double floor = std::pow(10, y.least), top = std::pow(10, y.most);
  if (slope > 0) {
    const double begin = std::clamp(floor / slope, first, last), end = std::clamp(top / slope, first, last);
    svg.line(x(begin), y(begin * slope), x(end), y(end * slope), "stroke=\"#333\" stroke-width=\"1.5\"");
    char words[60];
    std::snprintf(words, sizeof(words), "read %.1f GB/s", ceilings.memory.best);
    svg.text(x(begin) + 6, y(begin * slope) - 14, words, "font-size=\"11\"");
  }
  for (const Peak& peak : ceilings.peaks) {
    if (!(peak.tops > 0))
      continue;
    const double from = slope > 0 ? std::clamp(peak.tops / slope, first, last) : first;
    svg.line(x(from), y(peak.tops), kLeft + kWidth, y(peak.tops), "stroke=\"#333\" stroke-dasharray=\"5 3\"");
    char words[100];
    std::snprintf(words, sizeof(words), "%.*s %.2f", static_cast<int>(peak.unit->name.size()), peak.unit->name.data(),
                  peak.tops);
    svg.text(kLeft + kWidth - 4, y(peak.tops) - 3, words, "text-anchor=\"end\" font-size=\"10\"");
  }
}

} // namespace

std::vector<RooflinePoint> roofline_points(const std::vector<PhaseProfile>& phases, const Ceilings& ceilings) {
  std::vector<RooflinePoint> out;
  for (size_t i = 0; i < phases.size(); ++i)
    for (const runtime::Profile::Row& row : phases[i].profile.rows) {
      if (!(row.bytes > 0) || !(row.operations > 0) || !(row.seconds > 0))
        continue;
      const double intensity = row.operations / row.bytes, peak = ceilings.peak_of(row.name);
      const double by_bytes = intensity * ceilings.memory.best * 1e-3;
      out.push_back({row.name + " " + std::to_string(row.rows) + "x" + std::to_string(row.cols), i, intensity,
                     row.tops(), peak > 0 ? std::min(by_bytes, peak) : by_bytes});
    }
  return out;
}

Status write_roofline(const std::string& path, const std::string& title, const std::vector<PhaseProfile>& phases,
                      const Ceilings& ceilings) {
  const std::vector<RooflinePoint> points = roofline_points(phases, ceilings);
  std::vector<double> across, up;
  for (const RooflinePoint& point : points) {
    across.push_back(point.intensity);
    up.push_back(point.tops);
  }
  for (const Peak& peak : ceilings.peaks) {
    up.push_back(peak.tops);
    if (ceilings.memory.best > 0)
      across.push_back(peak.tops / ceilings.memory.best * 1e3);
  }
  const Axis x = axis_over(across, kLeft, kWidth), y = axis_over(up, kTop + kHeight, -kHeight);
  const double lines = static_cast<double>(points.size() + phases.size());
  Svg svg;
  svg.add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1180\" height=\"%.0f\" font-family=\"sans-serif\" "
          "font-size=\"12\">",
          std::max(kTop + kHeight + 50, kTop + (lines + 1) * kLine));
  svg.add("<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>");
  svg.text(kLeft, 22, title, "font-size=\"15\"");
  draw_axes(svg, x, y);
  draw_ceilings(svg, x, y, ceilings);
  double legend = kTop;
  for (size_t i = 0; i < phases.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    char attributes[60];
    std::snprintf(attributes, sizeof(attributes), "fill=\"%s\" font-weight=\"bold\"", colour);
    svg.text(kLegend, legend, phases[i].phase + ", share of the ceiling above", attributes);
    legend += kLine;
    for (size_t n = 0; n < points.size(); ++n) {
      const RooflinePoint& point = points[n];
      if (point.phase != i)
        continue;
      svg.add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>", x(point.intensity), y(point.tops), colour);
      svg.text(x(point.intensity) + 6, y(point.tops) + 4, std::to_string(n + 1), "font-size=\"9\"");
      char share[40];
      std::snprintf(share, sizeof(share), "%zu  %.2f  ", n + 1, point.ceiling > 0 ? point.tops / point.ceiling : 0);
      svg.text(kLegend, legend, share + point.label, "font-size=\"10\"");
      legend += kLine;
    }
  }
  svg.add("</svg>");
  CORTIQ_ASSIGN_OR_RETURN(formats::AtomicFile file, formats::AtomicFile::create(path));
  CORTIQ_RETURN_IF_ERROR(file.write(svg.str()));
  return file.commit();
}

} // namespace cortiq::bench
