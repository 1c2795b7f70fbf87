#include "cli/data_flags.h"

#include "fcp/base/error.h"

namespace fcp::cli {
namespace {

void add_images(CLI::App& verb, DataFlags& flags) {
  verb.add_flag(
      "--images", flags.images,
      "The data are images: a CSV of files and labels, or a uint8 .npy [N, height, width, "
      "3]; a folder always is");
  const auto given = [&flags](const std::string&) { flags.transform_given = true; };
  verb.add_option("--resize", flags.transform.resize,
                  "Images: length of the shorter side; 0: as they are")
      ->capture_default_str()
      ->each(given);
  verb.add_option("--crop", flags.transform.crop, "Images: side of the middle square; 0: none")
      ->capture_default_str()
      ->each(given);
  verb.add_option("--mean", flags.transform.mean, "Images: mean of each channel, in [0, 1]")
      ->delimiter(',')
      ->each(given);
  verb.add_option("--deviation", flags.transform.deviation,
                  "Images: deviation of each channel, in [0, 1]")
      ->delimiter(',')
      ->each(given);
  verb.add_option("--class-names", flags.class_names, "File of class names, one per line");
}

}  // namespace

void add_data(CLI::App& verb, DataFlags& flags, bool needs_target) {
  flags.needs_target = needs_target;
  if (needs_target) {
    verb.add_option("--target", flags.target,
                    "Target: a CSV column by name or 0-based index (several: a,b), or an .npy "
                    "file; folders of images name it themselves");
  }
  verb.add_option("--separator", flags.separator,
                  "CSV separator: a character or 'tab'; found out when absent");
  verb.add_option("--header", flags.header, "Whether the CSV has a header: auto, yes or no")
      ->check(CLI::IsMember({"auto", "yes", "no"}))
      ->capture_default_str();
  verb.add_option("--drop", flags.drop, "CSV columns to leave out")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--categorical", flags.categorical, "CSV columns of categories, to one-hot")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_flag("--impute", flags.impute, "Replace missing CSV values by the column's mean");
  verb.add_option("--batch", flags.batch, "Rows at a time; 0 chooses")->capture_default_str();
  add_images(verb, flags);
}

void add_facts(CLI::App& verb, FactOptions& options) {
  verb.add_option("--group", options.group,
                  "The group of each row: a CSV column, or an .npy file of group numbers");
  verb.add_option("--weights", options.weights,
                  "The likelihood ratio of each row: a CSV column or an .npy file");
}

namespace {

char separator_of(const std::string& text) {
  if (text.empty()) return 0;
  if (text == "tab" || text == "\\t") return '\t';
  if (text.size() != 1)
    throw UsageError(concat("--separator ", text, ": expected one character or 'tab'"));
  return text[0];
}

}  // namespace

DataOptions data_options(const DataFlags& flags) {
  DataOptions options{.data = flags.data,
                      .target = flags.target,
                      .needs_target = flags.needs_target,
                      .images = flags.images,
                      .class_names = flags.class_names};
  options.csv.separator = separator_of(flags.separator);
  options.csv.header = flags.header == "yes"  ? CsvHeader::kYes
                       : flags.header == "no" ? CsvHeader::kNo
                                              : CsvHeader::kAuto;
  options.csv.drop = flags.drop;
  options.csv.categorical = flags.categorical;
  options.csv.impute = flags.impute;
  if (flags.transform_given) options.transform = flags.transform;
  return options;
}

}  // namespace fcp::cli
