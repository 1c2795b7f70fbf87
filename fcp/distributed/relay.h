// Work in numbered batches, made by all ranks and taken by rank 0 in their order.
//
// Batch b is made by rank b mod R. In each round every rank makes one batch, and rank 0 then takes
// the round's R results, ascending: so what it sees is one list that does not depend on R, and
// whatever it adds up is bit-equal to one process. No rank need know how many batches there are,
// and none runs ahead of rank 0 by more than the messages that MPI keeps on the way.
//
// Batches are cut alike for any R. That matters because the last bits of a score depend on the rows
// that were computed together with it.
//
// Cost: the results of all batches reach rank 0; rounds = ⌈batches / R⌉ + 1.
// Tested by tests/distributed/relay_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fcp/distributed/communicator.h"

namespace fcp {

// `make` gives the result of a batch, which is not empty, or nothing where there are no more; it is
// called with ascending numbers and after nothing no more. `take` is called on rank 0 alone.
void relay_batches(Communicator& ranks,
                   const std::function<std::optional<std::string>(size_t batch)>& make,
                   const std::function<void(size_t batch, std::string_view result)>& take);

// The same of results that have pack and unpack, to bytes and back, which one rank does not need.
template <typename Result>
void relay_batches(Communicator& ranks,
                   const std::function<std::optional<Result>(size_t batch)>& make,
                   const std::function<void(size_t batch, Result result)>& take) {
  if (ranks.size() == 1) {
    for (size_t batch = 0; std::optional<Result> made = make(batch); ++batch) {
      take(batch, *std::move(made));
    }
    return;
  }
  relay_batches(
      ranks,
      [&](size_t batch) {
        const std::optional<Result> made = make(batch);
        return made ? std::optional(made->pack()) : std::nullopt;
      },
      [&](size_t batch, std::string_view bytes) { take(batch, Result::unpack(bytes)); });
}

}  // namespace fcp
