#include "fcp/data/images/scenes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/output_file.h"
#include "fcp/data/images/image_list.h"

namespace fcp {
namespace {

constexpr std::array<Colour, kSceneClasses> kPalette = {{{0.10, 0.10, 0.12},    // bonnet
                                                         {0.33, 0.33, 0.36},    // road
                                                         {0.72, 0.66, 0.60},    // sidewalk
                                                         {0.58, 0.38, 0.28},    // building
                                                         {0.56, 0.74, 0.95},    // sky
                                                         {0.75, 0.12, 0.14},    // car
                                                         {0.90, 0.72, 0.15},    // person
                                                         {0.18, 0.42, 0.16}}};  // tree

// One scene while it is painted. Lengths are meant for 64 rows; `unit` scales them.
class ScenePainter {
 public:
  ScenePainter(uint64_t seed, const SceneOptions& options)
      : random_(seed),
        canvas_(options.height, options.width),
        unit_(options.height / 64.0),
        height_(options.height),
        width_(options.width),
        horizon_(height_ * between(0.38, 0.52)),
        vanishing_(width_ * between(0.35, 0.65)),
        road_half_(width_ * between(0.30, 0.45)) {}

  Scene paint(double noise) {
    paint_sky();
    paint_buildings();
    paint_ground();
    paint_things();
    paint_bonnet();
    const double gain = between(0.8, 1.15), slope = between(-0.2, 0.2) / width_;
    const auto light = [&](int x, int) { return gain + slope * (x - width_ / 2); };
    const auto grain = [&](uint8_t label) { return label == kTree ? 3 * noise : noise; };
    Image labels = canvas_.labels();
    return {canvas_.photograph(random_, light, grain), std::move(labels)};
  }

 private:
  // Something that stands on the ground: what it is, and where its foot is.
  struct Thing {
    SceneClass what;
    double x;
    double y;
  };

  double between(double low, double high) { return low + (high - low) * random_.uniform(); }

  // The colour of the class, a little different each time.
  Colour shade(SceneClass what, double spread) {
    Colour colour = kPalette[what];
    const double brightness = between(-spread, spread);
    for (double& value : colour) value += brightness + between(-spread, spread) / 2;
    return colour;
  }

  static Colour mix(const Colour& a, const Colour& b, double share) {
    Colour colour;
    for (size_t i = 0; i < 3; ++i) colour[i] = a[i] + share * (b[i] - a[i]);
    return colour;
  }

  void paint_sky() {
    const Colour top = shade(kSky, 0.06), low = mix(top, {1, 1, 1}, between(0.2, 0.6));
    canvas_.paint(
        {0, 0, width_, height_}, kSky, [](double, double) { return true; },
        [&](double, double y) { return mix(top, low, std::min(1.0, y / horizon_)); });
  }

  void paint_buildings() {
    for (double left = between(-10, 5) * unit_; left < width_;) {
      const double right = left + between(12, 34) * unit_;
      const double top = horizon_ - between(0.35, 1.0) * horizon_;
      if (random_.uniform() < 0.8) paint_building({left, top, right, horizon_ + unit_});
      left = right + (random_.uniform() < 0.3 ? between(2, 10) * unit_ : 0);
    }
  }

  void paint_building(const SceneBox& box) {
    const Colour wall = shade(kBuilding, 0.10), window = mix(wall, {0.1, 0.12, 0.2}, 0.6);
    const double floor = between(5, 8) * unit_, bay = between(4, 7) * unit_;
    const auto in_window = [&](double x, double y) {
      const double across = std::fmod(x - box.left, bay) / bay;
      const double down = std::fmod(y - box.top, floor) / floor;
      return across > 0.3 && across < 0.7 && down > 0.35 && down < 0.75;
    };
    canvas_.paint(
        box, kBuilding, [](double, double) { return true; },
        [&](double x, double y) { return in_window(x, y) ? window : wall; });
  }

  // 0 at the horizon, 1 at the lower edge.
  double nearness(double y) const { return (y - horizon_) / (height_ - horizon_); }
  double road_centre(double y) const {
    return vanishing_ + nearness(y) * (width_ / 2 - vanishing_);
  }
  double road_half(double y) const { return 2 * unit_ + nearness(y) * road_half_; }

  void paint_ground() {
    const SceneBox ground = {0, horizon_, width_, height_};
    canvas_.paint_box(ground, kSidewalk, shade(kSidewalk, 0.07));
    const Colour asphalt = shade(kRoad, 0.06), marking = mix(asphalt, {1, 1, 1}, 0.6);
    const double phase = between(0, 3);
    const auto in_marking = [&](double x, double y) {
      const double dash = std::fmod(3 / (nearness(y) + 0.1) + phase, 3);
      return std::abs(x - road_centre(y)) < road_half(y) / 30 && dash < 1.6;
    };
    canvas_.paint(
        ground, kRoad,
        [&](double x, double y) { return std::abs(x - road_centre(y)) < road_half(y); },
        [&](double x, double y) { return in_marking(x, y) ? marking : asphalt; });
  }

  // On the road, or on one of its sides, where there is room for a foot.
  Thing place(SceneClass what, bool on_road) {
    const double y = horizon_ + between(0.12, 0.9) * (height_ - horizon_);
    const double centre = road_centre(y), half = road_half(y);
    if (on_road) return {what, centre + between(-0.75, 0.75) * half, y};
    const bool left = random_.uniform() < 0.5;
    const double free = left ? centre - half : width_ - centre - half;
    const double away = half + between(0.1, 0.9) * std::max(0.0, free);
    return {what, left ? centre - away : centre + away, y};
  }

  void paint_things() {
    std::vector<Thing> things;
    for (uint64_t i = random_.below(4); i > 0; --i) things.push_back(place(kTree, false));
    for (uint64_t i = random_.below(4); i > 0; --i) things.push_back(place(kCar, true));
    for (uint64_t i = random_.below(4); i > 0; --i) {
      things.push_back(place(kPerson, random_.uniform() < 0.3));
    }
    std::sort(things.begin(), things.end(),
              [](const Thing& a, const Thing& b) { return a.y < b.y; });
    for (const Thing& thing : things) {
      const double size = unit_ * (0.25 + nearness(thing.y));
      if (thing.what == kTree) paint_tree(thing, size);
      if (thing.what == kCar) paint_car(thing, size);
      if (thing.what == kPerson) paint_person(thing, size);
    }
  }

  void paint_tree(const Thing& tree, double size) {
    const double trunk = 14 * size, width = 1.4 * size, crown = between(8, 12) * size;
    canvas_.paint_box({tree.x - width, tree.y - trunk, tree.x + width, tree.y}, kTree,
                      {0.30, 0.22, 0.14});
    const double middle = tree.y - trunk - 0.6 * crown;
    canvas_.paint_ellipse(
        {tree.x - 0.8 * crown, middle - crown, tree.x + 0.8 * crown, middle + crown}, kTree,
        shade(kTree, 0.05));
  }

  void paint_car(const Thing& car, double size) {
    const double half = between(11, 14) * size, tall = between(10, 12) * size;
    const double wheel = 2.4 * size, roof = car.y - tall, waist = car.y - 0.55 * tall;
    // Red, blue or white: three kinds of car.
    const uint64_t kind = random_.below(3);
    Colour paint = shade(kCar, 0.06);
    if (kind == 1) std::swap(paint[0], paint[2]);
    if (kind == 2) paint = mix(paint, {0.96, 0.96, 0.99}, 0.95);
    canvas_.paint_ellipse({car.x - 0.8 * half, roof, car.x + 0.8 * half, car.y}, kCar,
                          mix(paint, {0.05, 0.07, 0.12}, 0.75));
    canvas_.paint_box({car.x - half, waist, car.x + half, car.y - 0.5 * wheel}, kCar, paint);
    for (const double at : {car.x - 0.6 * half, car.x + 0.6 * half}) {
      canvas_.paint_ellipse({at - wheel, car.y - 1.5 * wheel, at + wheel, car.y + 0.5 * wheel},
                            kCar, {0.05, 0.05, 0.05});
    }
  }

  void paint_person(const Thing& person, double size) {
    const double tall = between(18, 23) * size, half = 0.17 * tall, head = 0.11 * tall;
    const Colour coat = shade(kPerson, 0.08);
    const double neck = person.y - 0.8 * tall, hip = person.y - 0.4 * tall;
    canvas_.paint_box({person.x - 0.7 * half, hip, person.x + 0.7 * half, person.y}, kPerson,
                      mix(coat, {0.3, 0.1, 0.4}, 0.6));
    canvas_.paint_ellipse({person.x - half, neck, person.x + half, hip + 0.2 * tall}, kPerson,
                          coat);
    canvas_.paint_ellipse({person.x - head, person.y - tall, person.x + head, neck + 0.05 * tall},
                          kPerson, {0.80, 0.58, 0.46});
  }

  void paint_bonnet() {
    const double rise = between(3, 6) * unit_;
    const SceneBox box = {-0.1 * width_, height_ - rise, 1.1 * width_, height_ + 3 * rise};
    canvas_.paint_ellipse(box, kUnlabelled, shade(kUnlabelled, 0.03));
  }

  Random random_;
  SceneCanvas canvas_;
  double unit_;
  double height_;
  double width_;
  double horizon_;
  double vanishing_;  // where the road ends at the horizon
  double road_half_;  // half its width at the lower edge
};

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(path, ": cannot make the folder: ", error.message());
}

std::string scene_name(size_t index) {
  const std::string digits = std::to_string(index);
  return concat("scene_", std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0'), digits);
}

}  // namespace

const std::vector<std::string>& scene_class_names() {
  static const std::vector<std::string> names = {"unlabelled", "road", "sidewalk", "building",
                                                 "sky",        "car",  "person",   "tree"};
  return names;
}

Scene make_scene(uint64_t seed, uint64_t index, const SceneOptions& options) {
  check_image_size(options.height, options.width, "scene");
  if (!(options.noise >= 0 && options.noise <= 1)) {
    fail("scene: noise ", options.noise, ", expected 0 to 1");
  }
  // Consecutive seeds give unrelated numbers, and the first draw keeps seeds apart.
  return ScenePainter(Random(seed).bits() + index, options).paint(options.noise);
}

void write_scenes(const std::string& folder, uint64_t seed, const SceneCounts& counts,
                  const SceneOptions& options, const std::function<void()>& written) {
  if (counts.all() == 0) fail(folder, ": no scene to write, expected at least 1");
  const std::string images = path_in(folder, "images"), labels = path_in(folder, "labels");
  make_folder(images);
  make_folder(labels);
  std::string split = "file,fold\n";
  for (size_t i = 0; i < counts.all(); ++i) {
    check_interrupted();
    const Scene scene = make_scene(seed, i, options);
    const std::string name = scene_name(i);
    write_png(path_in(labels, name + ".png"), scene.labels);
    write_png(path_in(images, name + ".png"), scene.image);
    const char* const fold = i < counts.train                        ? "train"
                             : i < counts.train + counts.calibration ? "calibration"
                                                                     : "test";
    split += concat(name, ",", fold, "\n");
    if (written) written();
  }
  std::string names;
  for (const std::string& name : scene_class_names()) names += name + "\n";
  write_file(path_in(folder, "classes.txt"), names);
  write_file(path_in(folder, "split.csv"), split);
}

Image SceneCanvas::labels() const {
  Image image = blank_image(height_, width_, 1);
  for (int y = 0; y < height_; ++y) {
    for (int x = 0; x < width_; ++x) image.row(y)[x] = labels_[middle(y, x)];
  }
  return image;
}

Colour SceneCanvas::mean_colour(int y, int x) const {
  Colour sum = {};
  for (int i = 0; i < kSamples; ++i) {
    for (int j = 0; j < kSamples; ++j) {
      const Colour& colour = colours_[index(y * kSamples + i, x * kSamples + j)];
      for (size_t channel = 0; channel < 3; ++channel) sum[channel] += colour[channel];
    }
  }
  for (double& value : sum) value /= kSamples * kSamples;
  return sum;
}

}  // namespace fcp
