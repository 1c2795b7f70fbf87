// Values made once by whoever asks first, for all threads: the others wait for it. What could not
// be made is tried again by the next who asks.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fcp {

template <typename Value>
class Memo {
 public:
  using Shared = std::shared_ptr<const Value>;

  Shared get(const std::string& key, const std::function<Value()>& make) {
    std::promise<Shared> promise;
    std::shared_future<Shared> value;
    {
      const std::lock_guard lock(mutex_);
      const auto found = values_.find(key);
      if (found != values_.end()) value = found->second;
      if (!value.valid()) values_[key] = promise.get_future().share();
    }
    if (value.valid()) return value.get();
    try {
      const auto made = std::make_shared<const Value>(make());
      promise.set_value(made);
      return made;
    } catch (...) {
      promise.set_exception(std::current_exception());
      const std::lock_guard lock(mutex_);
      values_.erase(key);
      throw;
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Shared>> values_;
};

}  // namespace fcp
