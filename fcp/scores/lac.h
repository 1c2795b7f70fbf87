// The least ambiguous set classifier: labels by their probability alone.
//
//   p            = softmax(logits / temperature), in double precision
//   score(v, k)  = 1 − p_k
//   region(v, r) = all labels with probability at least 1 − r
//
// Of all scores it gives the smallest sets where the probabilities are true; the sets are as often
// too small for hard rows as too large for easy ones. A set may be empty. With a share of pixels
// asked for (ScoreOptions::pixels) every pixel of an image has its set: pixel_sets.h.
//
// Cost: one forward and C exponentials per row. Reference: Sadinle, Lei, Wasserman, Least Ambiguous
// Set-Valued Classifiers With Bounded Error Levels, 2019. Tested by tests/scores/labels_test.cc and
// label_law_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

std::unique_ptr<Score> make_lac(const ScoreOptions& options, std::shared_ptr<const Network> head);

}  // namespace fcp
