// An exported file answered by ONNX Runtime, without fcp and libtorch: the interval of one row.
//
//   $ fcp export model.onnx --alpha 0.1 --out exported.onnx
//   $ g++ -std=c++17 5_onnxruntime.cc -I/usr/include/onnxruntime -lonnxruntime -o onnxruntime_row
//   $ ./onnxruntime_row exported.onnx 3.2 17 4 2 0 0.7 1 12
//   24.25 36.5
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <onnxruntime_cxx_api.h>

int main(int argc, char** argv) {
  try {
    std::vector<float> row;
    for (int i = 2; i < argc; ++i) row.push_back(std::strtof(argv[i], nullptr));
    const Ort::Env environment(ORT_LOGGING_LEVEL_WARNING);
    Ort::Session session(environment, argc > 1 ? argv[1] : "", Ort::SessionOptions());
    const auto name = session.GetInputNameAllocated(0, Ort::AllocatorWithDefaultOptions());
    const int64_t shape[] = {1, static_cast<int64_t>(row.size())};
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    const Ort::Value x =
        Ort::Value::CreateTensor<float>(memory, row.data(), row.size(), shape, std::size(shape));
    const char* const inputs[] = {name.get()};
    const char* const outputs[] = {"lower", "upper"};  // of label sets: "in_set", of bool
    const std::vector<Ort::Value> ends =
        session.Run(Ort::RunOptions(), inputs, &x, 1, outputs, std::size(outputs));
    std::printf("%g %g\n", *ends[0].GetTensorData<float>(), *ends[1].GetTensorData<float>());
    return 0;
  } catch (const Ort::Exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
