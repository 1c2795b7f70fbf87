// One row of a table given by name, as the features that a network was trained on.
//
// Tested by tests/data/record_test.cc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fcp/data/csv.h"

namespace fcp {

// The features of a row whose columns have these texts. A column that is not there, or whose text
// stands for no value, is missing; columns that the encoding does not know are passed over; a
// category that it does not know is read as in a CSV file. An Error names the row and the column;
// `where` is what the message calls the row. `flags` gets what no training row had
// (column_facts.h).
std::vector<float> encode_record(const CsvEncoding& encoding,
                                 const std::map<std::string, std::string>& record,
                                 const std::string& where, std::string* flags = nullptr);

// Without the spaces and tabs around it, as cells are compared.
std::string trimmed_text(const std::string& text);

// Whether a missing number is a legal input of the network: it becomes NaN, which the network
// takes as a signal of its own.
bool accepts_missing(const CsvEncoding& encoding);

}  // namespace fcp
