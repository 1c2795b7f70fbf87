#include "fcp/data/split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/number.h"
#include "fcp/data/table_schema.h"

namespace fcp {
namespace {

// Where parts end in a list of `count` rows: at the rounded share of it.
std::vector<size_t> part_ends(const std::vector<double>& shares, size_t count) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<size_t> ends;
  double before = 0;
  for (const double share : shares) {
    before += share;
    ends.push_back(static_cast<size_t>(std::round(before / sum * static_cast<double>(count))));
  }
  return ends;
}

using Parts = std::vector<std::vector<size_t>>;

// An order of all rows, cut at the ends.
Parts cut_order(const std::vector<size_t>& order, const std::vector<double>& shares) {
  Parts parts(shares.size());
  const std::vector<size_t> ends = part_ends(shares, order.size());
  size_t part = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    while (i >= ends[part]) ++part;
    parts[part].push_back(order[i]);
  }
  return parts;
}

// Stratum after stratum, each in random order, from a random row on and around: each row goes to
// the part that lacks most so far. Rows of a stratum are thus spread over the parts, and every
// place in that walk is as likely for every row, so that each has the same chance to be in a part.
Parts cut_strata(const std::vector<std::string>& strata, const std::vector<double>& shares,
                 Random& random) {
  std::map<std::string, std::vector<size_t>> members;
  for (const size_t row : random.permutation(strata.size())) members[strata[row]].push_back(row);
  std::vector<size_t> line;
  for (const auto& [name, rows] : members) line.insert(line.end(), rows.begin(), rows.end());
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const size_t first = random.below(line.size());
  Parts parts(shares.size());
  for (size_t i = 0; i < line.size(); ++i) {
    const auto lack = [&](size_t part) {
      return shares[part] / sum * static_cast<double>(i + 1) -
             static_cast<double>(parts[part].size());
    };
    size_t best = 0;
    for (size_t part = 1; part < shares.size(); ++part) {
      if (lack(part) > lack(best) + 1e-9) best = part;
    }
    parts[best].push_back(line[(first + i) % line.size()]);
  }
  return parts;
}

Parts deal_groups(const std::vector<std::string>& groups, const std::vector<double>& shares,
                  Random& random) {
  std::map<std::string, std::vector<size_t>> members;
  for (size_t row = 0; row < groups.size(); ++row) members[groups[row]].push_back(row);
  std::vector<const std::vector<size_t>*> lists;
  for (const auto& [name, rows] : members) lists.push_back(&rows);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  Parts parts(shares.size());
  for (const size_t at : random.permutation(lists.size())) {
    size_t best = 0;
    double most = -1e300;
    for (size_t part = 0; part < shares.size(); ++part) {
      const double wanted = shares[part] / sum * static_cast<double>(groups.size());
      const double lacks = (wanted - static_cast<double>(parts[part].size())) / wanted;
      if (lacks > most) {
        most = lacks;
        best = part;
      }
    }
    parts[best].insert(parts[best].end(), lists[at]->begin(), lists[at]->end());
  }
  return parts;
}

// Likewise; a group goes where its first row does.
Parts cut_order_of_groups(const std::vector<size_t>& order, const std::vector<std::string>& groups,
                          const std::vector<double>& shares) {
  Parts parts(shares.size());
  const std::vector<size_t> ends = part_ends(shares, order.size());
  size_t part = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool begins = i == 0 || groups[order[i]] != groups[order[i - 1]];
    while (begins && i >= ends[part]) ++part;
    parts[part].push_back(order[i]);
  }
  return parts;
}

}  // namespace

std::vector<size_t> order_by_time(const std::vector<double>& times,
                                  const std::vector<std::string>& groups) {
  struct Group {
    double newest = -std::numeric_limits<double>::infinity();
    size_t first = 0;  // its first row: tells groups of the same time apart
  };
  std::map<std::string, Group> known;
  for (size_t row = 0; row < groups.size(); ++row) {
    Group& group = known.try_emplace(groups[row], Group{.first = row}).first->second;
    group.newest = std::max(group.newest, times[row]);
  }
  std::vector<Group> place(times.size());
  for (size_t row = 0; row < times.size(); ++row) {
    place[row] = groups.empty() ? Group{times[row], 0} : known.at(groups[row]);
  }
  std::vector<size_t> order(times.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(place[a].newest, place[a].first) < std::pair(place[b].newest, place[b].first);
  });
  return order;
}

std::vector<std::vector<size_t>> split_rows(size_t rows, const std::vector<double>& shares,
                                            uint64_t seed, const SplitColumns& columns) {
  Random random(seed);
  Parts parts;
  if (!columns.times.empty()) {
    const std::vector<size_t> order = order_by_time(columns.times, columns.groups);
    parts = columns.groups.empty() ? cut_order(order, shares)
                                   : cut_order_of_groups(order, columns.groups, shares);
  } else if (!columns.groups.empty()) {
    parts = deal_groups(columns.groups, shares, random);
  } else if (!columns.strata.empty()) {
    parts = cut_strata(columns.strata, shares, random);
  } else {
    parts = cut_order(random.permutation(rows), shares);
  }
  for (std::vector<size_t>& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

std::vector<double> parse_shares(const std::string& text) {
  std::vector<double> shares;
  for (size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(':', begin), text.size());
    double share = 0;
    if (!parse_number(text.substr(begin, end - begin), share) || !(share > 0) ||
        !std::isfinite(share)) {
      fail_option("shares", in_quotes(text), " is not a list of positive numbers, as 3:1:1");
    }
    shares.push_back(share);
  }
  if (shares.size() < 2) fail_option("shares", "one share, expected at least two, as 3:1:1");
  return shares;
}

std::vector<double> read_time_column(const std::string& path, const std::string& column,
                                     const CsvOptions& options) {
  const std::vector<std::string> cells = read_csv_column(path, column, options);
  ColumnSummary summary(column);
  for (const std::string& cell : cells) summary.add(cell);
  std::string why;
  CellFormat format = summary.format(/*commas=*/false, why);
  if (format.kind == ColumnKind::kIdentifier) format = {};  // rows counted by time are in order
  if (format.kind != ColumnKind::kNumber) format.kind = ColumnKind::kDate;
  std::vector<double> times(cells.size());
  for (size_t row = 0; row < cells.size(); ++row) {
    if (!parse_cell(cells[row], format, times[row])) {
      fail(path, ": column ", in_quotes(column), ", row ", row, " (from 0): found ",
           in_quotes(cells[row]), ", expected a time: a date or a number");
    }
  }
  return times;
}

void write_parts(const std::string& path, const std::vector<std::vector<size_t>>& parts,
                 const std::vector<std::string>& out, const CsvOptions& options) {
  CsvRecords records(open_text(path, options.text_encoding), options.separator);
  const CsvHead head = read_head(records, options.header);
  std::vector<size_t> refused;
  if (options.refused && options.refused->contains(path)) refused = options.refused->at(path);
  if (!head.header) fail(path, ": has no header, which files of parts need");
  const std::vector<std::string>& first = head.names;
  records.rewind();
  records.next();

  size_t rows = 0;
  for (const auto& part : parts) rows += part.size();
  std::vector<size_t> part_of(rows, parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const size_t row : parts[i]) part_of.at(row) = i;
  }
  std::vector<std::unique_ptr<CsvWriter>> writers;
  for (size_t i = 0; i < parts.size(); ++i) {
    writers.push_back(std::make_unique<CsvWriter>(out[i], first));
  }
  size_t row = 0;  // among those that are kept
  auto next_refused = refused.begin();
  for (size_t at = 0; records.next(); ++at) {
    if (next_refused != refused.end() && *next_refused == at) {
      ++next_refused;
      continue;
    }
    if (records.cells().size() != first.size()) {
      fail(path, ": line ", records.line(), " has ", records.cells().size(), " cells, expected ",
           first.size());
    }
    CsvWriter& writer = *writers.at(part_of.at(row++));
    for (const std::string_view cell : records.cells()) writer.cell(cell);
    writer.end_row();
  }
  for (const auto& writer : writers) writer->close();
}

Folds paper_folds(size_t rows, uint64_t seed) {
  const std::vector<size_t> order = Random(seed).permutation(rows);
  const auto at = [&](size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  const size_t test = rows / 5 + (rows % 5 > 0 ? 1 : 0);
  const size_t half = (rows - test) / 2;
  return {.training = {at(test), at(test + half)},
          .calibration = {at(test + half), at(test + 2 * half)},
          .test = {at(0), at(test)}};
}

GroupedOrder grouped_order(std::span<const int64_t> groups, uint64_t seed) {
  std::map<int64_t, std::vector<size_t>> members;
  for (size_t row = 0; row < groups.size(); ++row) members[groups[row]].push_back(row);
  std::vector<const std::vector<size_t>*> lists;
  for (const auto& [group, rows] : members) lists.push_back(&rows);
  GroupedOrder order;
  for (const size_t at : Random(seed).permutation(lists.size())) {
    order.first.insert(order.first.end(), lists[at]->size(), order.rows.size());
    order.rows.insert(order.rows.end(), lists[at]->begin(), lists[at]->end());
  }
  return order;
}

}  // namespace fcp
