// The settings of a calibrated network as JSON, which its artifact carries: score, cut, calibration
// and all their options, and a format number. docs/formats.md names the fields. Tested by
// tests/predictor/artifact_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fcp/level.h"
#include "fcp/predictor/artifact.h"

namespace fcp {

std::string settings_text(const CalibrationArtifact& artifact);

// Fills in everything but the network, the lists and the provenance. An Error, or one of nlohmann's
// JSON library, where the text is damaged or of another format.
void read_settings(const std::string& text, CalibrationArtifact& artifact);

// What a calibrated predictor is and where it comes from, as plain values: what `fcp show` prints,
// and a server tells about its models.
// Tested by tests/calibrate/update_test.cc.

struct ArtifactFacts {
  std::string score, calibration;
  std::string cut;  // empty: the network's input
  size_t rows = 0;
  size_t version = 1;                                // 1, and one more for each update
  std::vector<std::string> heads;                    // learned outputs that the network carries
  std::vector<std::string> groups;                   // with a radius of their own
  std::string probabilities;                         // of labels: softmax or venn-abers
  std::vector<size_t> probability_steps;             // of each calibrated class
  std::vector<std::string> columns;                  // of the table that the network was trained on
  std::vector<std::string> inputs;                   // "x [?, 8]"
  std::vector<std::string> outputs;                  // likewise
  std::vector<std::string> kept_levels;              // where not all scores are there
  std::vector<std::pair<Level, double>> guaranteed;  // cross: coverage, which is below 1 − α
  std::vector<std::pair<Level, std::vector<double>>> radii;  // one per side; empty: none for all
  std::string settings;                                      // all options, as JSON
  std::map<std::string, std::string> provenance;
};

ArtifactFacts artifact_facts(const CalibrationArtifact& artifact);

// SHA-256 of a file's bytes, in hexadecimal digits.
std::string file_sha256(const std::string& path);

}  // namespace fcp
